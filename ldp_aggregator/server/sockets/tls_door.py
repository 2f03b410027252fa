"""Accepting connections that have yet to speak TLS.

A loop's own server makes a connection of a socket only after the handshake, so that nobody could count or time those
that never shake hands. Here they have a number and a time of their own; beyond the number, clients wait outside.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Final

LOG: Final = logging.getLogger("ldp_aggregator")

HANDSHAKE_SECONDS: Final = 5.0
"""How long a client may take to shake hands."""
MOST_HANDSHAKES: Final = 256
"""Handshakes at one time. With the limit of connections it bounds what a listener takes of the process's sockets."""
PAUSE_SECONDS: Final = 1.0
"""After a failure to accept; it is nearly always that the process has no socket left."""


class TlsDoor:
    """Accepts on a bound socket and hands what has shaken hands to a protocol that ``connect`` makes."""

    def __init__(self, bound: socket.socket, tls: ssl.SSLContext, connect: Callable[[], asyncio.BaseProtocol]) -> None:
        self._bound = bound
        self._tls = tls
        self._connect = connect
        self._room = asyncio.Semaphore(MOST_HANDSHAKES)
        self._greeting: set[asyncio.Task[None]] = set()
        self.accepting = asyncio.create_task(self._accept(), name="door")
        """Nobody can connect once this ends."""

    def close(self) -> None:
        """Accept no more, and give up handshakes."""
        for task in (self.accepting, *self._greeting):
            task.cancel()
        self.accepting.add_done_callback(lambda _: self._bound.close())

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._room.acquire()
            try:
                accepted, _ = await loop.sock_accept(self._bound)
            except Exception as error:
                self._room.release()
                LOG.warning("cannot accept", extra={"reason": type(error).__name__})
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            accepted.setblocking(False)
            task = asyncio.create_task(self._greet(accepted))
            self._greeting.add(task)
            task.add_done_callback(self._greeting.discard)

    async def _greet(self, accepted: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._connect, accepted, ssl=self._tls, ssl_handshake_timeout=HANDSHAKE_SECONDS
            )
        except (OSError, EOFError, asyncio.TimeoutError):
            accepted.close()  # Not TLS, hung up, or too slow: nobody of ours to tell.
        finally:
            self._room.release()
