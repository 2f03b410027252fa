"""The seconds that an exchange may still take, and whether it is still wanted."""

from __future__ import annotations

import socket
import time
from functools import partial

from ldp_client.errors import TransportError
from ldp_client.network.transport import Cancellation


class Patience:
    """One for a whole exchange: every step takes from the same seconds, and is stopped by the same word."""

    __slots__ = ("_until", "cancellation")

    def __init__(self, timeout: float, cancellation: Cancellation | None) -> None:
        self._until = time.monotonic() + timeout
        self.cancellation = Cancellation() if cancellation is None else cancellation

    def left(self) -> float:
        """The seconds left. Raises TimeoutError where there are none, and TransportError once it is cancelled."""
        if self.cancellation.cancelled:
            raise TransportError("cancelled")
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def arm(self, sock: socket.socket) -> None:
        """Let what ``sock`` does next take no longer than what is left."""
        sock.settimeout(self.left())

    def guard(self, sock: socket.socket) -> None:
        """Cancelling ends what another thread is doing on ``sock``.

        Shut down, not closed: the descriptor stays its owner's, and whoever waits on it wakes. As a plain socket: TLS
        would want to say goodbye.
        """
        self.cancellation.on_cancel(partial(socket.socket.shutdown, sock, socket.SHUT_RDWR))
