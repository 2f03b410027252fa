"""Questions to the operating system that nobody can interrupt: what are the addresses of this name?

They are asked in daemon threads, a bounded number of them; whoever waits may stop waiting.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Final

from ldp_client.network.patience import Patience
from ldp_client.runtime import tell_after_fork

MOST_LOOKUPS: Final = 4
"""Threads at most: a resolver that hangs holds no more than these."""

Address = tuple[socket.AddressFamily, tuple[Any, ...]]


class Lookups:
    """Ask each question once at a time: whoever asks it meanwhile waits for the same answer."""

    def __init__(self, most: int = MOST_LOOKUPS) -> None:
        self._most = most
        self.after_fork()
        tell_after_fork(self)

    def after_fork(self) -> None:
        """The threads are the parent's, and so is whoever held the lock."""
        self._changed = threading.Condition()
        self._under_way: dict[Hashable, _Lookup] = {}

    def ask(self, key: Hashable, question: Callable[[], Any], patience: Patience) -> Any:
        """The answer to ``question``, which ``key`` identifies. Raises what Patience.left raises, and OSError where the
        question did.
        """
        patience.cancellation.on_cancel(self._wake)
        with self._changed:
            while key not in self._under_way and len(self._under_way) >= self._most:
                self._changed.wait(patience.left())
            lookup = self._under_way.get(key) or self._start(key, question)
            while not lookup.done:
                self._changed.wait(patience.left())
        if lookup.failed:
            raise OSError("no answer")
        return lookup.answer

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _start(self, key: Hashable, question: Callable[[], Any]) -> _Lookup:
        lookup = _Lookup()
        thread = threading.Thread(target=self._run, args=(key, question, lookup), name="ldp-client-lookup", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            # No more threads, or the interpreter is shutting down.
            raise OSError("no thread") from None
        self._under_way[key] = lookup
        return lookup

    def _run(self, key: Hashable, question: Callable[[], Any], lookup: _Lookup) -> None:
        try:
            lookup.answer = question()
        except Exception:
            lookup.failed = True
        with self._changed:
            lookup.done = True
            del self._under_way[key]
            self._changed.notify_all()


class _Lookup:
    __slots__ = ("answer", "done", "failed")

    def __init__(self) -> None:
        self.answer: Any = None
        self.done = self.failed = False


LOOKUPS: Final = Lookups()


def addresses(host: str, port: int, patience: Patience) -> list[Address]:
    """Return where to connect, in the order in which to try."""
    for family in (socket.AF_INET, socket.AF_INET6):
        if packed(family, host) is not None:
            return [(family, (host, port))]
    found = LOOKUPS.ask((host, port), partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM), patience)
    return [(family, address) for family, _, _, _, address in found]


def packed(family: socket.AddressFamily, host: str) -> bytes | None:
    """The bytes of a numeric address, None for anything else."""
    try:
        return socket.inet_pton(family, host)
    except (OSError, ValueError):
        return None
