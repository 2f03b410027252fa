"""From an address to a socket that is ready for a request: names, several addresses, proxies, TLS."""

from __future__ import annotations

import base64
import contextlib
import secrets
import socket
import ssl
from typing import Final

from ldp_client.errors import TransportError
from ldp_client.network.lookups import addresses, packed
from ldp_client.network.patience import Patience
from ldp_client.network.proxies import Proxy

_LONGEST_PROXY_ANSWER: Final = 1 << 14


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
    """The first address that answers. Each gets an even part of what is left, so that a dead one leaves time for the
    next.
    """
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
