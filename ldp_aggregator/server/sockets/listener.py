"""Sockets that accept connections."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

from aiohttp import web

from ldp_aggregator.server.metrics import ConnectionWatch
from ldp_aggregator.server.sockets.connection import Connection
from ldp_aggregator.server.sockets.connections import Connections
from ldp_aggregator.server.sockets.handler import Handler
from ldp_aggregator.server.sockets.memory import Memory
from ldp_aggregator.server.sockets.tls_door import TlsDoor
from ldp_aggregator.server.uploads.desk import Desk
from ldp_aggregator.service.settings import Limits, Settings

BACKLOG: Final = 1024


@dataclass(frozen=True)
class Addresses:
    """Where a running server listens."""

    public: str
    admin: str
    operations: str


@dataclass(frozen=True)
class Listeners:
    """The three sockets of a server, bound before any process serves them."""

    NAMES: ClassVar = ("public", "admin", "operations")

    public: socket.socket
    admin: socket.socket
    operations: socket.socket

    @classmethod
    def bind(cls, settings: Settings) -> Listeners:
        """Raises OSError."""
        places = (
            (settings.host, settings.port),
            (settings.admin_host, settings.admin_port),
            (settings.operations_host, settings.operations_port),
        )
        bound: list[socket.socket] = []
        try:
            bound += (bind(host, port) for host, port in places)
        except OSError:
            for one in bound:
                one.close()
            raise
        return cls(*bound)

    def addresses(self, settings: Settings) -> Addresses:
        return Addresses(
            _url_of(self.public, tls=settings.tls_key is not None),
            _url_of(self.admin, tls=False),
            _url_of(self.operations, tls=False),
        )


class Accepting(Protocol):
    """What accepts connections until it is closed."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class Listening:
    """A listener that accepts, and the connections it has."""

    server: Accepting
    connections: Connections
    task: asyncio.Task[None] | None = None
    """What accepts, where that is a task of ours: the listener is as good as closed once it ends."""


async def listen(
    runner: web.AppRunner,
    bound: socket.socket,
    limits: Limits,
    memory: Memory,
    watch: ConnectionWatch,
    *,
    desk: Desk | None = None,
    tls: ssl.SSLContext | None = None,
) -> Listening:
    """Accept connections for a runner that was set up, and uploads for a desk."""
    loop = asyncio.get_running_loop()
    connections = Connections(limits.connections, watch)

    def make_handler(answered: Callable[[], None]) -> Handler:
        return Handler(runner.server, loop, limits, watch, answered)

    def connect() -> Connection:
        return Connection(loop, limits, connections, memory, make_handler, desk)

    if tls is not None:
        door = TlsDoor(bound, tls, connect)
        return Listening(door, connections, door.accepting)
    return Listening(await loop.create_server(connect, sock=bound, backlog=BACKLOG), connections)


def bind(host: str, port: int) -> socket.socket:
    """A bound socket. Raises OSError."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(BACKLOG)
        bound.setblocking(False)
    except OSError as error:
        bound.close()
        raise OSError(error.errno, f"{host or 'any address'} port {port}: {error.strerror}") from None
    return bound


def _url_of(bound: socket.socket, *, tls: bool) -> str:
    host, port = bound.getsockname()[:2]
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"
