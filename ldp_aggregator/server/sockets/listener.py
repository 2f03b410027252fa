"""Sockets that accept connections, as many open files as that can take, and TLS.

A loop's own server makes a connection of a socket only after the handshake, so that nobody could count or time those
that never shake hands. With TLS they have a number and a time of their own. Who has said nothing waits apart from who
is shaking hands, and if all places are taken it is the oldest that goes: whoever has something to say gets in.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import ClassVar, Final, cast

from aiohttp import web

from ldp_aggregator.server.gateway import GatewayKeys
from ldp_aggregator.server.intake import Intake
from ldp_aggregator.server.sockets.connections import MOST_REFUSALS, Connections
from ldp_aggregator.server.sockets.handed_over import make_handler
from ldp_aggregator.server.sockets.upload_path import ClientConnection
from ldp_aggregator.service.settings import Settings, host_and_port, setting_error
from ldp_aggregator.store.contract import LOG, kind_of

BACKLOG: Final = 1024
SOON: Final = timedelta(days=7)
"""A certificate that ends within this time is logged when it is read."""
OWN: Final = 128
"""Open files for the store, its database, logs, and what accepts on the other listeners."""


@dataclass(frozen=True)
class Addresses:
    """The URLs of a running server's listeners."""

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
        """The bound sockets of the settings. Raises OSError."""
        bound: list[socket.socket] = []
        try:
            places = (settings.listen, settings.listen_admin, settings.listen_operations)
            bound += (bind(*host_and_port(place)) for place in places)
        except OSError:
            for one in bound:
                one.close()
            raise
        return cls(*bound)

    def addresses(self, settings: Settings) -> Addresses:
        public = _url_of(self.public, tls=settings.tls_key is not None)
        return Addresses(public, _url_of(self.admin, tls=False), _url_of(self.operations, tls=False))


async def listen(
    runner: web.AppRunner,
    bound: socket.socket,
    connections: Connections,
    *,
    intake: Intake | None = None,
    gateway: GatewayKeys | None = None,
    tls: ssl.SSLContext | None = None,
) -> asyncio.Task[None] | None:
    """Accept connections for a runner that was set up, and uploads for an intake and a gateway. Returns what accepts,
    where that is a task of ours: the listener is as good as closed once it ends.
    """

    def connect() -> ClientConnection:
        return ClientConnection(connections, partial(make_handler, runner, connections.limits), intake, gateway)

    if tls is not None:
        connections.server = door = TlsListener(bound, tls, connect)
        return door.accepting
    connections.server = await connections.loop.create_server(connect, sock=bound, backlog=BACKLOG)
    return None


async def end_connections(runners: Sequence[web.AppRunner], accepting: Sequence[Connections], seconds: float) -> None:
    """Accept no more and let open requests end. Those that have not after ``seconds`` in all are cut off, also if a
    client does not read its answer.
    """
    until = asyncio.get_running_loop().time() + seconds
    for connections in accepting:
        connections.server.close()
    finishing = [asyncio.create_task(connections.finish()) for connections in accepting]
    if finishing:
        await asyncio.wait(finishing, timeout=seconds)
    for connections in accepting:
        connections.cut()
    ending = [*finishing, *(asyncio.create_task(runner.cleanup()) for runner in runners)]
    _, late = await asyncio.wait(ending, timeout=max(until - asyncio.get_running_loop().time(), 0))
    for task in late:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)


def most_descriptors(connections: int) -> int:
    """Count the open files that three listeners, of so many connections each, and the process itself can come to."""
    return 3 * (connections + MOST_REFUSALS) + MOST_SILENT + MOST_HANDSHAKES + OWN


def raise_limit(connections: int) -> None:
    """Let this process have so many; where the system does not, say so: a full public listener could then stop the
    admin listener.
    """
    try:
        import resource
    except ModuleNotFoundError:  # Windows counts them differently.
        return
    wanted = most_descriptors(connections)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < wanted:
        LOG.warning("too few open files", extra={"reason": f"the limit is {allowed}, connections takes {wanted}"})


def bind(host: str, port: int) -> socket.socket:
    """A bound socket. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = found[0]
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


HANDSHAKE_SECONDS: Final = 5.0
"""Seconds that a client has for its first byte, and then for its handshake."""
MOST_SILENT: Final = 256
MOST_HANDSHAKES: Final = 256
"""Most handshakes at one time; with the limit of connections they bound a listener's sockets."""
PAUSE_SECONDS: Final = 1.0
"""Seconds after a failure to accept, which is nearly always for want of sockets."""


class TlsListener:
    """Accepts on a bound socket and hands what has shaken hands to a protocol that ``connect`` makes."""

    def __init__(self, bound: socket.socket, tls: ssl.SSLContext, connect: Callable[[], asyncio.BaseProtocol]) -> None:
        self._bound, self._tls, self._connect = bound, tls, connect
        self._loop = asyncio.get_running_loop()
        self._silent: dict[socket.socket, asyncio.TimerHandle] = {}
        self._greeting: dict[asyncio.Task[None], socket.socket | None] = {}
        """Tasks of handshakes, each with its socket until the task has begun."""
        self.accepting = asyncio.create_task(self._accept(), name="door")
        """The task that accepts connections, until it ends."""

    def close(self) -> None:
        """Accept no more, and give up handshakes."""
        self.accepting.cancel()
        for task in list(self._greeting):
            self._give_up(task)
        for accepted in list(self._silent):
            self._drop(accepted)
        self.accepting.add_done_callback(lambda _: self._bound.close())

    async def _accept(self) -> None:
        while True:
            try:
                accepted, _ = await self._loop.sock_accept(self._bound)
            except Exception as error:
                LOG.warning("cannot accept", extra={"reason": kind_of(error)})
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            accepted.setblocking(False)
            if len(self._silent) >= MOST_SILENT:
                self._drop(next(iter(self._silent)))
            self._silent[accepted] = self._loop.call_later(HANDSHAKE_SECONDS, self._drop, accepted)
            self._loop.add_reader(accepted, self._begin, accepted)

    def _hear(self, accepted: socket.socket) -> socket.socket:
        """Wait no longer for a first word."""
        self._silent.pop(accepted).cancel()
        self._loop.remove_reader(accepted)
        return accepted

    def _drop(self, accepted: socket.socket) -> None:
        self._hear(accepted).close()

    def _begin(self, accepted: socket.socket) -> None:
        if len(self._greeting) >= MOST_HANDSHAKES:
            self._give_up(next(iter(self._greeting)))
        task = self._loop.create_task(self._greet(self._hear(accepted)))
        self._greeting[task] = accepted
        task.add_done_callback(lambda done: self._greeting.pop(done, None))

    def _give_up(self, task: asyncio.Task[None]) -> None:
        accepted = self._greeting.pop(task)
        task.cancel()
        if accepted is not None:
            accepted.close()

    async def _greet(self, accepted: socket.socket) -> None:
        self._greeting[cast("asyncio.Task[None]", asyncio.current_task())] = None
        try:
            await self._loop.connect_accepted_socket(
                self._connect, accepted, ssl=self._tls, ssl_handshake_timeout=HANDSHAKE_SECONDS
            )
        except (OSError, EOFError):
            accepted.close()  # Not TLS, hung up, or too slow: nobody of ours to tell.


def load_tls(settings: Settings) -> ssl.SSLContext | None:
    """The TLS context of the public listener, None if it speaks plain HTTP. Raises LdpError."""
    if settings.tls_certificate is None or settings.tls_key is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(settings.tls_certificate, settings.tls_key)
    except (OSError, ssl.SSLError) as error:
        pair = f"tls_certificate {settings.tls_certificate} and tls_key {settings.tls_key}"
        raise setting_error(f"{pair} cannot be loaded: {_wrong_pair(settings, error)}") from error
    _warn_of_end(settings.tls_certificate)
    return context


def end_of(certificate: Path) -> datetime:
    """The end of a certificate's time. Raises OSError, and ValueError for what is none."""
    from cryptography.x509 import load_pem_x509_certificate  # Takes memory that only TLS needs.

    return load_pem_x509_certificate(certificate.read_bytes()).not_valid_after_utc


def _warn_of_end(certificate: Path) -> None:
    """Tell of a certificate that devices take for expired, at the start and whenever it is read again."""
    left = end_of(certificate) - datetime.now(timezone.utc)
    if left <= timedelta():
        LOG.error("the certificate has expired and devices do not connect", extra={"file": certificate.name})
    elif left < SOON:
        LOG.warning("the certificate expires within a week", extra={"file": certificate.name})


def _wrong_pair(settings: Settings, error: OSError) -> str:
    """Say what is wrong with certificate and key."""
    for path in (settings.tls_certificate, settings.tls_key):
        if path is not None and not path.is_file():
            return f"there is no file {path}"
    if getattr(error, "reason", None) == "KEY_VALUES_MISMATCH":
        return "the key is another certificate's"
    return "one of them is not PEM, or the key has a password" if isinstance(error, ssl.SSLError) else str(error)


def reload_tls(settings: Settings, context: ssl.SSLContext | None) -> None:
    """Read the certificate again; connections that are open keep the old one. Raises LdpError, and changes nothing."""
    # A context of its own first: a pair that does not fit together must not end up half loaded.
    if load_tls(settings) is not None and context is not None:
        context.load_cert_chain(str(settings.tls_certificate), str(settings.tls_key))
