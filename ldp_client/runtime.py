"""The platform's part: time, what is left of it for a call, and locks that survive a fork.

What a fork changes is here in one place: locks start free in the child, and who holds something of the parent's is
told. Only the thread that forked exists in the child. Everything that this package keeps across a fork is registered
here; nothing compares process ids.
"""

from __future__ import annotations

import _imp
import importlib
import os
import sys
import threading
import time
import weakref
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Clock(Protocol):
    """The module ``time`` is one."""

    def time(self) -> float:
        """Seconds since 1970, as far as this machine knows."""

    def monotonic(self) -> float:
        """Seconds that never jump."""

    def sleep(self, seconds: float, /) -> None:
        """Wait."""


SYSTEM_CLOCK: Final[Clock] = time


def jitter() -> float:
    """Draw from [0, 1) uniformly. Never from the device's own coins: those are for answers, and may be scripted."""
    return int.from_bytes(os.urandom(8), "little") / 2.0**64


class _Call(threading.local):
    """The call that a thread is in."""

    until = float("inf")


_CALL: Final = _Call()


@contextmanager
def within(seconds: float | None) -> Iterator[None]:
    """Bound the block's waits in this thread to ``seconds`` in all (None: no limit), inside outer blocks' limits.
    Safety: real time, not the app's clock, which may be set or stand still.
    """
    before = _CALL.until
    if seconds is not None:
        _CALL.until = min(before, time.monotonic() + seconds)
    try:
        yield
    finally:
        _CALL.until = before


def seconds_left(unlimited: float) -> float:
    """The seconds that the call has left, 0 where they are over; ``unlimited`` where nobody has set any."""
    until = _CALL.until
    return unlimited if until == float("inf") else max(0.0, until - time.monotonic())


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

    def acquire(self, timeout: float) -> bool:
        """Take the lock; False when ``timeout`` seconds pass first."""
        return self._lock.acquire(timeout=min(max(0.0, timeout), threading.TIMEOUT_MAX))

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


_LOADED_LATER: Final = sys.stdlib_module_names | {"cryptography", "ldp_client", "ldp_protocols", "msgpack", "pyhpke"}
"""Packages of which this one imports modules at their first use."""
_LOADING_SECONDS: Final = 5.0
"""A fork waits no longer: an import may have no end."""


def _before_fork() -> None:
    """Wait for transactions and imports under way.

    Safety: Python copies the lock of a module that another thread imports into the child, which would wait for it for
    ever at its own first use. With the import lock held nobody begins another one before the fork.
    """
    ONE_TRANSACTION.acquire()
    until = time.monotonic() + _LOADING_SECONDS
    _imp.acquire_lock()
    while _is_loading() and time.monotonic() < until:
        _imp.release_lock()
        time.sleep(0.001)
        _imp.acquire_lock()


def _is_loading() -> bool:
    """True while another thread imports one of them."""
    locks: dict[str, Callable[[], Any]] = getattr(importlib._bootstrap, "_module_locks", {})
    owners = (
        getattr(lock(), "owner", None) for name, lock in list(locks.items()) if name.partition(".")[0] in _LOADED_LATER
    )
    return any(owner not in {None, threading.get_ident()} for owner in owners)


def _in_parent() -> None:
    ONE_TRANSACTION.release()
    with suppress(RuntimeError):  # It is not held where an interrupt ended the wait.
        _imp.release_lock()


def _in_child() -> None:
    _in_parent()
    for inheritor in list(_INHERITORS):
        inheritor.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
