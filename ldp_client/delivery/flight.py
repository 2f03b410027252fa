"""The upload under way: one at most, which others may stop or wait for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ldp_client.delivery.machine import Place
from ldp_client.runtime import tell_after_fork
from protocols.light import TYPE_CHECKING

if TYPE_CHECKING:
    from ldp_client.network.transport import Cancellation


class Flight:
    """Thread-safe; in a child nothing is under way."""

    def __init__(self) -> None:
        self.after_fork()
        tell_after_fork(self)

    def after_fork(self) -> None:
        """What is under way is the parent's."""
        self._now: tuple[Place, Cancellation, int] | None = None
        self._landed = threading.Condition()

    @contextmanager
    def of(self, place: Place, attempt: Cancellation) -> Iterator[Cancellation]:
        """An upload of a place, until it has been taken note of."""
        self._now = (place, attempt, threading.get_ident())
        try:
            yield attempt
        finally:
            with self._landed:
                self._now = None
                self._landed.notify_all()

    @property
    def place(self) -> Place | None:
        """Whose upload it is."""
        now = self._now
        return None if now is None else now[0]

    def cancel(self, place: Place | None = None) -> bool:
        """Stop it (where it is of ``place``); True where there was none, or nothing of it has left nor will."""
        now = self._now
        return True if now is None or place not in {None, now[0]} else now[1].cancel()

    def await_landing(self, place: Place, timeout: float) -> bool:
        """Wait for it to end, where it is of ``place``; False where ``timeout`` seconds pass first."""
        with self._landed:
            return self._landed.wait_for(lambda: not self._flies(place), timeout)

    def _flies(self, place: Place) -> bool:
        """Whether an upload of a place is under way in another thread."""
        now = self._now
        return now is not None and now[0] == place and now[2] != threading.get_ident()
