"""HTTP: what a request is, how one is made with the standard library, and the aggregator behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ldp_client.network.transport import Cancellation, Request, Response, Transport


class SharedTransport:
    """The standard library's transport of all devices of this process without their own, made at the first request."""

    begins_body = True

    def __init__(self) -> None:
        self._made: Transport | None = None

    def send(self, request: Request, timeout: float, cancellation: Cancellation | None = None) -> Response:
        """See :class:`ldp_client.network.transport.Transport`."""
        made = self._made
        if made is None:
            # Imported here: an app that brings its own transport does not pay for http.client and ssl.
            from ldp_client.network.stdlib import HttpTransport

            # Two threads may each make one: it holds nothing that would be lost.
            self._made = made = HttpTransport()
        return made.send(request, timeout, cancellation)


SHARED_TRANSPORT: Final = SharedTransport()
