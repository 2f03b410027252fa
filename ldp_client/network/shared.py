"""The transport of all clients of this process that were given none."""

from __future__ import annotations

import atexit
from typing import Final

from ldp_client.network.transport import Request, Response, Transport
from ldp_client.runtime.fork import ForkSafeLock

_MAKING: Final = ForkSafeLock()
_made: Final[list[Transport]] = []


class SharedTransport:
    """Makes the standard library's transport when the first request is due."""

    def send(self, request: Request, timeout: float) -> Response:
        """See :class:`ldp_client.network.transport.Transport`."""
        return _shared().send(request, timeout)


SHARED_TRANSPORT: Final = SharedTransport()


def _shared() -> Transport:
    with _MAKING:
        if not _made:
            # Imported here: an app that brings its own transport does not pay for http.client and ssl.
            from ldp_client.network.stdlib import HttpTransport

            transport = HttpTransport()
            atexit.register(transport.close)
            _made.append(transport)
        return _made[0]
