"""The standard library's HTTP: honours proxies, verifies certificates, follows no redirect, keeps no connection.

Every request has a connection of its own. A device makes a handful in a campaign's life, so that a kept one would save
next to nothing; it would link campaigns, a report and a later question for the model, and people who share a backend;
it would go stale and leave in doubt what arrived; and a fork would inherit it.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from ldp_client.errors import TRANSPORT_PROBLEMS, TransportError
from ldp_client.network.transport import Cancellation, Request, Response, is_host, is_loopback
from ldp_client.runtime import tell_after_fork
from ldp_protocols.errors import LdpError

LARGEST_HEAD: Final = 1 << 16
"""Bytes of an answer before its body."""

_PIECE: Final = 1 << 16

MOST_LOOKUPS: Final = 4
"""Threads at most: a resolver that hangs holds no more than these."""

Address = tuple[socket.AddressFamily, tuple[Any, ...]]

_PORTS: Final = {"http": 80, "socks5": 1080, "socks5h": 1080}
_LONGEST_CREDENTIAL: Final = 255
_LONGEST_PROXY_ANSWER: Final = 1 << 14


class HttpTransport:
    """Thread-safe and fork-safe, since there is nothing to share; one is enough for a process.

    Parameters
    ----------
    context
        TLS settings; None takes the system's certificate store and full verification.
    proxies
        Scheme (or ``all``) to proxy: ``http://host:port`` or ``socks5h://host:port``. None takes those of the
        environment. Loopback never goes through a proxy. Raises LdpError for one that cannot be used.
    """

    begins_body = True

    def __init__(self, *, context: ssl.SSLContext | None = None, proxies: Mapping[str, str] | None = None) -> None:
        self._context = context
        self._proxies = Proxies(proxies)

    def send(self, request: Request, timeout: float, cancellation: Cancellation | None = None) -> Response:
        """See :class:`ldp_client.network.transport.Transport`."""
        patience = Patience(timeout, cancellation)
        try:
            return self._exchange(request, patience)
        except (http.client.HTTPException, OSError) as error:
            # Never sent again from here: whoever asked decides, and may have been told to stop meanwhile.
            code = "cancelled" if patience.cancellation.cancelled else _problem(error)
            raise TransportError(code, _naming(TRANSPORT_PROBLEMS[code], request.url)) from error
        except ValueError:
            raise TransportError("bad-request") from None

    def _exchange(self, request: Request, patience: Patience) -> Response:
        parts = urlsplit(request.url)
        secure, host = parts.scheme == "https", parts.hostname or ""
        standard = 443 if secure else 80
        port = parts.port or standard
        target = parts.path + (f"?{parts.query}" if parts.query else "") or "/"
        headers = {**request.headers, "Connection": "close"}
        proxy = self._proxies.proxy(parts.scheme, host, patience)
        if proxy is not None and not proxy.socks and not secure:
            target = request.url
            headers.update(proxy_credentials(proxy))
        connection = http.client.HTTPConnection(host, port)
        connection.default_port = standard
        # A connection that is lost stays lost.
        connection.auto_open = 0
        # A class to the type checker, any callable to http.client.
        connection.response_class = partial(_BoundedResponse, patience)  # type: ignore[assignment]
        connection.putrequest(request.method, target)
        for name, value in headers.items():
            connection.putheader(name, value)
        if request.body is not None:
            connection.putheader("Content-Length", str(len(request.body)))
        connection.sock = dial(host, port, self._tls() if secure else None, proxy, patience)
        with contextlib.closing(connection):
            return _converse(connection, connection.sock, request, patience)

    def _tls(self) -> ssl.SSLContext:
        if self._context is None:
            self._context = ssl.create_default_context()
        return self._context


def _converse(
    connection: http.client.HTTPConnection, sock: socket.socket, request: Request, patience: Patience
) -> Response:
    patience.cancellation.begin_body()
    patience.arm(sock)
    connection.endheaders()
    if request.body:
        patience.arm(sock)
        connection.send(request.body)
    answer = connection.getresponse()
    # Closed whatever happens: read1 does not end an exchange, and the answer may own the socket.
    with contextlib.closing(answer):
        body = _read(answer, request.largest_answer)
    return Response(answer.status, {name.lower(): value for name, value in answer.getheaders()}, body)


def _read(answer: http.client.HTTPResponse, largest: int) -> bytes:
    """The body, as far as it is not too long."""
    pieces = []
    size = 0
    while piece := answer.read1(_PIECE):
        size += len(piece)
        pieces.append(piece)
        if size > largest:
            raise TransportError("answer-too-long")
    if answer.length:
        raise http.client.IncompleteRead(b"")
    return b"".join(pieces)


class _BoundedResponse(http.client.HTTPResponse):
    """An answer complete in time, headers bounded: a socket's timeout starts anew with every byte that drips."""

    def __init__(self, patience: Patience, sock: socket.socket, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        reader: Any = self.fp
        read = reader.raw.readinto
        head = 0

        def read_in_time(buffer: bytearray) -> int | None:
            nonlocal head
            # Before reading: what comes at once may be a head and the most of a body, 128 KiB since Python 3.14.
            if self.headers is None and head >= LARGEST_HEAD:
                raise TransportError("answer-too-long")
            patience.arm(sock)
            count: int | None = read(buffer)
            head += count or 0
            return count

        reader.raw.readinto = read_in_time


def _naming(problem: str, url: str) -> str:
    """The problem with the server's host and port in it."""
    parts = urlsplit(url)
    port = parts.port or {"https": 443}.get(parts.scheme, 80)
    return problem.replace("the server", f"the server at {parts.hostname}:{port}", 1)


def _problem(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, ssl.SSLCertVerificationError):
        return "tls-untrusted"
    if isinstance(error, (http.client.HTTPException, ConnectionResetError, BrokenPipeError)):
        return "connection-lost"
    return "unreachable"


class Patience:
    """The seconds left for an exchange, which all its steps share, and the cancellation that stops them."""

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


class Lookups:
    """Questions to the operating system that nobody can interrupt: what are the addresses of this name?

    They are asked in daemon threads, a bounded number of them; whoever waits may stop waiting. Each is asked once at a
    time: whoever asks it meanwhile waits for the same answer.
    """

    def __init__(self, most: int = MOST_LOOKUPS) -> None:
        self._most = most
        self.after_fork()
        tell_after_fork(self)

    def after_fork(self) -> None:
        """The threads are the parent's, and so is whoever held the lock."""
        self._changed = threading.Condition()
        self._under_way: dict[Hashable, _Lookup] = {}

    def ask(self, key: Hashable, question: Callable[[], Any], patience: Patience) -> Any:
        """The answer to ``question``, shared by ``key``. Raises as Patience.left, and the question's OSError."""
        patience.cancellation.on_cancel(self._wake)
        with self._changed:
            while key not in self._under_way and len(self._under_way) >= self._most:
                self._changed.wait(patience.left())
            lookup = self._under_way.get(key) or self._start(key, question)
            while not lookup.done:
                self._changed.wait(patience.left())
        if lookup.failure is not None:
            raise OSError("no answer") from lookup.failure
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
        except Exception as error:
            lookup.failure = error
        with self._changed:
            lookup.done = True
            del self._under_way[key]
            self._changed.notify_all()


class _Lookup:
    __slots__ = ("answer", "done", "failure")

    def __init__(self) -> None:
        self.answer: Any = None
        self.done = False
        self.failure: Exception | None = None


LOOKUPS: Final = Lookups()


def addresses(host: str, port: int, patience: Patience) -> list[Address]:
    """Addresses to connect to, in the order in which to try."""
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


@dataclass(frozen=True)
class Proxy:
    """``credentials``: user name and password, where the address has them."""

    socks: bool
    host: str
    port: int
    credentials: tuple[str, str] | None = field(default=None, repr=False)


def read_proxy(address: str) -> Proxy:
    """The proxy at ``http://user:password@host:port``, ``host:port``, or ``socks5h://host:port``.

    SOCKS means version 5, and names are looked up by the proxy, also where it says ``socks5``: looked up here, they
    would tell whoever answers. Raises LdpError for anything else, such as a proxy that wants TLS itself.
    """
    try:
        parts = urlsplit(address if "//" in address else f"http://{address}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    else:
        if parts.scheme in _PORTS and is_host(host) and port != 0:
            user, password = unquote(parts.username or ""), unquote(parts.password or "")
            if max(len(user.encode()), len(password.encode())) <= _LONGEST_CREDENTIAL:
                credentials = (user, password) if parts.username is not None else None
                return Proxy(parts.scheme != "http", host, port or _PORTS[parts.scheme], credentials)
    # The address is not repeated: it may hold a password.
    raise LdpError("bad-proxy", "a proxy must be like http://host:port or socks5h://host:port")


class Proxies:
    """Proxies by scheme (or ``all``); ``given`` None reads the environment's, ``NO_PROXY`` included, when needed.

    Loopback never goes through a proxy. Raises LdpError for a given address that is none.
    """

    def __init__(self, given: Mapping[str, str] | None) -> None:
        self._from_environment = given is None
        self._addresses = dict(getproxies() if given is None else given)
        if given is not None:
            for address in given.values():
                read_proxy(address)

    def proxy(self, scheme: str, host: str, patience: Patience) -> Proxy | None:
        """The proxy on the way to ``host``. Raises TransportError for an environment's that is none."""
        address = self._addresses.get(scheme) or self._addresses.get("all")
        if not address or is_loopback(host):
            return None
        # Some systems look names up to decide this.
        if self._from_environment and LOOKUPS.ask(("bypass", host), lambda: proxy_bypass(host), patience):
            return None
        try:
            return read_proxy(address)
        except LdpError:
            raise TransportError("bad-proxy") from None


def dial(host: str, port: int, tls: ssl.SSLContext | None, proxy: Proxy | None, patience: Patience) -> socket.socket:
    """A connection to ``host``, through ``proxy`` where there is one, with TLS where there is a context.

    Plain http through an HTTP proxy ends at the proxy, which reads the whole address in the request. Raises
    TransportError or OSError; nothing stays open then.
    """
    sock = _connect(host if proxy is None else proxy.host, port if proxy is None else proxy.port, patience)
    with contextlib.ExitStack() as undo:
        undo.callback(lambda: sock.close())
        if proxy is not None and proxy.socks:
            _ask_socks(sock, proxy, host, port, patience)
        elif proxy is not None and tls is not None:
            _ask_tunnel(sock, proxy, host, port, patience)
        if tls is not None:
            # Guarded before it speaks: a cancellation finds the socket that is in use.
            sock = tls.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
            patience.guard(sock)
            patience.arm(sock)
            sock.do_handshake()
        undo.pop_all()
    return sock


def proxy_credentials(proxy: Proxy) -> dict[str, str]:
    """The header that an HTTP proxy reads."""
    if proxy.credentials is None:
        return {}
    return {"Proxy-Authorization": "Basic " + base64.b64encode(":".join(proxy.credentials).encode()).decode("ascii")}


def _connect(host: str, port: int, patience: Patience) -> socket.socket:
    """The first address that answers, each tried for an even part of the time left, so that a dead one leaves some."""
    found = addresses(host, port, patience)
    failure: OSError = OSError("no address")
    for position, (family, address) in enumerate(found):
        left = patience.left()
        sock: socket.socket | None = None
        try:
            sock = socket.socket(family, socket.SOCK_STREAM)
            patience.guard(sock)
            sock.settimeout(left / (len(found) - position))
            sock.connect(address)
            # A report is one small message; nothing is gained by waiting for more.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
        except OSError as error:
            failure = error
            if sock is not None:
                sock.close()
    patience.left()
    raise failure


def _ask_tunnel(sock: socket.socket, proxy: Proxy, host: str, port: int, patience: Patience) -> None:
    """RFC 9110, section 9.3.6. The answer is read byte by byte, so that nothing behind it is taken."""
    authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}"]
    lines += [f"{name}: {value}" for name, value in proxy_credentials(proxy).items()]
    patience.arm(sock)
    sock.sendall("\r\n".join([*lines, "", ""]).encode("ascii"))
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += _receive(sock, 1, patience)
        if len(head) > _LONGEST_PROXY_ANSWER:
            raise TransportError("proxy-refused")
    version, _, status = head.partition(b" ")
    if not version.startswith(b"HTTP/1.") or not status.startswith(b"2"):
        raise TransportError("proxy-refused")


def _ask_socks(sock: socket.socket, proxy: Proxy, host: str, port: int, patience: Patience) -> None:
    """RFC 1928, and RFC 1929 where the proxy asks for a name and a password.

    Without any of ours it gets random ones: Tor then makes a circuit for this connection alone (IsolateSOCKSAuth), and
    no two requests can be linked by theirs.
    """

    def say(*parts: bytes) -> None:
        patience.arm(sock)
        sock.sendall(b"".join(parts))

    say(b"\x05\x02\x00\x02")
    version, method = _receive(sock, 2, patience)
    if version != 5 or method not in {0, 2}:
        raise TransportError("proxy-refused")
    if method == 2:
        user, password = proxy.credentials or (secrets.token_hex(8), secrets.token_hex(8))
        say(b"\x01", *(bytes([len(text)]) + text for text in (user.encode(), password.encode())))
        if _receive(sock, 2, patience)[1] != 0:
            raise TransportError("proxy-refused")
    v4, v6 = packed(socket.AF_INET, host), packed(socket.AF_INET6, host)
    name = host.encode("ascii")
    destination = b"\x01" + v4 if v4 else b"\x04" + v6 if v6 else b"\x03" + bytes([len(name)]) + name
    say(b"\x05\x01\x00", destination, port.to_bytes(2, "big"))
    version, refusal, _, kind = _receive(sock, 4, patience)
    if version != 5 or refusal or kind not in {1, 3, 4}:
        raise TransportError("proxy-refused")
    length = {1: 4, 4: 16}.get(kind) or _receive(sock, 1, patience)[0]
    _receive(sock, length + 2, patience)


def _receive(sock: socket.socket, count: int, patience: Patience) -> bytes:
    """Exactly ``count`` bytes."""
    received = b""
    while len(received) < count:
        patience.arm(sock)
        piece = sock.recv(count - len(received))
        if not piece:
            raise ConnectionResetError
        received += piece
    return received
