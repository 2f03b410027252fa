"""aiohttp's side of a connection: it is given one request at a time and says when it has answered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web
from aiohttp.http_exceptions import LineTooLong
from aiohttp.web_protocol import RequestHandler

from ldp_aggregator.server.metrics import ConnectionWatch
from ldp_aggregator.server.problems import ProblemError
from ldp_aggregator.service.settings import Limits

LINGER_SECONDS: Final = 2.0
"""How long a refused body is still read, so that the client sees the answer and not a reset."""
READ_BYTES: Final = 1 << 14
"""What a body may be ahead of its handler before reading pauses."""
NEVER: Final = 3650 * 86400.0
"""Seconds after which aiohttp would close an idle connection; ours are closed by who watches them."""

_SILENT: Final = logging.getLogger("ldp_aggregator.http")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False  # aiohttp's messages carry the client's address.


class Handler(RequestHandler):
    """``answered`` is called whenever the answer to a request was written."""

    __slots__ = ("_answered", "_last", "_watch", "body_problem")

    def __init__(
        self,
        manager: Any,
        loop: asyncio.AbstractEventLoop,
        limits: Limits,
        watch: ConnectionWatch,
        answered: Callable[[], None],
    ) -> None:
        super().__init__(
            manager,
            loop=loop,
            access_log=None,  # type: ignore[arg-type]  # None is documented, and turns the log off.
            logger=_SILENT,
            keepalive_timeout=NEVER,
            max_line_size=limits.header_bytes,
            max_field_size=limits.header_bytes,
            lingering_time=LINGER_SECONDS,
            read_bufsize=READ_BYTES,
            auto_decompress=False,
        )
        self._answered = answered
        self._watch = watch
        self.body_problem: ProblemError | None = None
        """Why the body of the current request is shorter than it was to be."""
        self._last = False

    async def start(self) -> None:
        if self._manager is not None:  # None: the connection ended before this task of its began.
            await super().start()

    @property
    def is_idle(self) -> bool:
        """Whether it waits for a request."""
        return self._waiter is not None and not self._waiter.done() and not self._messages

    @property
    def has_begun(self) -> bool:
        """Whether the head of a request has arrived."""
        return self._request_count > 0

    def answer_once(self) -> None:
        """Close the connection with the next answer."""
        self._last = True

    def fail_body(self, problem: ProblemError) -> bool:
        """Have a body that is being read end before its end, with a problem; False where nobody reads it yet."""
        if self._current_request is None:
            return False
        self.body_problem = problem
        self._current_request.content.feed_eof()
        return True

    def handle_error(
        self, request: Any, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Bytes that are no request. The exception's message may repeat them, so it is not passed on."""
        code = "headers-too-large" if isinstance(exc, LineTooLong) else "malformed-request"
        code = "internal-error" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else code
        self._watch.refused(code)
        response = ProblemError(code).response()
        response.force_close()
        return response

    async def finish_response(
        self, request: Any, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        if self._last:
            resp.force_close()
        finished = await super().finish_response(request, resp, start_time)
        self._loop.call_soon(self._answered)
        return finished
