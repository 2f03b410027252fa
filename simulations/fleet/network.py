"""The network between devices and server: counts what passes, and can lose answers on purpose."""

from __future__ import annotations

import random
import threading

from ldp_client import TransportError
from ldp_client.network.stdlib import HttpTransport
from ldp_client.network.transport import Cancellation, Request, Response, Transport


class Network:
    """A transport for any number of devices and threads.

    Parameters
    ----------
    inner
        What really sends; None takes the client's own HTTP.
    lost_answers
        Share of uploads whose answer never arrives, although the server has counted them: the device tries again.
    seed
        Of these accidents.
    """

    def __init__(self, inner: Transport | None = None, *, lost_answers: float = 0, seed: int | None = None) -> None:
        self._inner = inner or HttpTransport()
        self._lost_answers = lost_answers
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self.upload_bytes = 0
        """Bytes of the bodies of all uploads so far."""
        self.first_upload: bytes | None = None
        """The body of the first upload, to look at."""

    def send(self, request: Request, timeout: float, cancellation: Cancellation | None = None) -> Response:
        """See :class:`ldp_client.network.transport.Transport`."""
        if request.method != "POST":
            return self._inner.send(request, timeout, cancellation)
        with self._lock:
            self.first_upload = self.first_upload or request.body
            lose = self._random.random() < self._lost_answers
            self.upload_bytes += len(request.body or b"")
        answer = self._inner.send(request, timeout, cancellation)
        if lose:
            raise TransportError("timeout")
        return answer
