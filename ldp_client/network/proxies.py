"""The proxy that a request takes: the one given, or the environment's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from ldp_client.errors import ConfigurationError, TransportError
from ldp_client.network.lookups import LOOKUPS
from ldp_client.network.patience import Patience
from ldp_client.network.transport import is_host, is_loopback

_PORTS: Final = {"http": 80, "socks5": 1080, "socks5h": 1080}
_LONGEST_CREDENTIAL: Final = 255


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
    would tell whoever answers. Raises ConfigurationError for anything else, such as a proxy that wants TLS itself.
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
    raise ConfigurationError("bad-proxy", "a proxy must be like http://host:port or socks5h://host:port")


class Proxies:
    """Loopback never goes through a proxy.

    Parameters
    ----------
    given
        Scheme (or ``all``) to address; None takes the environment's, ``NO_PROXY`` included. Raises ConfigurationError
        for an address that is none; the environment's is read when it is needed.
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
        except ConfigurationError:
            raise TransportError("bad-proxy") from None
