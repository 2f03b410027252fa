"""What the platform gives: time, and locks that survive a fork.

What a fork changes is here in one place: locks start free in the child, and who holds something of the parent's is
told. Only the thread that forked exists in the child. Everything that this package keeps across a fork is registered
here; nothing compares process ids.
"""

from __future__ import annotations

import os
import threading
import time
import weakref

from protocols.light import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Final


class Clock(Protocol):
    """The module ``time`` is one."""

    def time(self) -> float:
        """Seconds since 1970, as far as this machine knows."""

    def monotonic(self) -> float:
        """Seconds that never jump."""

    def sleep(self, seconds: float, /) -> None:
        """Wait."""


SYSTEM_CLOCK: Final[Clock] = time


class Inheritor(Protocol):
    """Something that must change in a child."""

    def after_fork(self) -> None:
        """The process is a child now, with one thread."""


ONE_TRANSACTION = threading.RLock()
"""Held by every transaction on a file.

Safety: SQLite keeps a process-wide list of locked files that a fork would copy in mid-transaction, and the child would
then wait for a lock that nobody holds. A fork therefore waits for the transaction under way.
"""

_INHERITORS: weakref.WeakSet[Inheritor] = weakref.WeakSet()


def tell_after_fork(inheritor: Inheritor) -> None:
    """Call ``inheritor.after_fork()`` in every child, for as long as it lives."""
    _INHERITORS.add(inheritor)


class ForkSafeLock:
    """A non-reentrant lock that is free in a child, whoever held it in the parent."""

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        tell_after_fork(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()

    def acquire(self, timeout: float = -1) -> bool:
        """Take the lock; False when ``timeout`` seconds pass first."""
        return self._lock.acquire(timeout=timeout)

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()


def _in_child() -> None:
    ONE_TRANSACTION.release()
    for inheritor in list(_INHERITORS):
        inheritor.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=ONE_TRANSACTION.acquire, after_in_parent=ONE_TRANSACTION.release, after_in_child=_in_child
    )
