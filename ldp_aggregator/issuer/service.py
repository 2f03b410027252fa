"""The issuer over HTTP (RFC 9578, sections 4 and 6): on loopback, behind a proxy that names people. Connections have
their times, places and memory as the aggregator's have.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from asyncio import IncompleteReadError
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, Counter

from ldp_aggregator.issuer.issuing import TokenIssuer
from ldp_aggregator.server.metrics import DoorMetrics
from ldp_aggregator.server.problems import MEDIA_TYPE as PROBLEM_TYPE
from ldp_aggregator.server.problems import SECURITY_HEADERS
from ldp_aggregator.server.sockets.connections import PUBLIC, Connections
from ldp_aggregator.server.sockets.handed_over import make_runner, watched
from ldp_aggregator.server.sockets.listener import bind, end_connections, listen, raise_limit
from ldp_aggregator.service.settings import Limits
from ldp_aggregator.store.contract import LOG, kind_of
from ldp_protocols import LdpError
from ldp_protocols.command_line import say
from ldp_protocols.tokens import REQUEST_BYTES, REQUEST_TYPE, RESPONSE_TYPE

REQUEST_PATH: Final = "/token-request"
DIRECTORY_PATH: Final = "/.well-known/private-token-issuer-directory"
DIRECTORY_TYPE: Final = "application/private-token-issuer-directory"
STATUSES: Final = {
    "malformed-request": 422,
    "other-key": 422,
    "no-person": 401,
    "two-people": 401,
    "malformed-person": 401,
    "tokens-spent": 403,
    "not-found": 404,
    "method-not-allowed": 405,
    "length-required": 411,
    "wrong-media-type": 415,
    "people-unavailable": 503,
}
"""HTTP status of each problem by its code; any other code is a 500."""
LIMITS: Final = Limits(header_bytes=4096, body_seconds=10.0, answer_seconds=30.0, drain_seconds=5.0)

Handler = Callable[[web.Request], Awaitable[web.Response]]


@dataclass(frozen=True)
class Route:
    """``longest`` is the longest body that is read."""

    method: str
    path: str
    handler: Handler
    longest: int = 0


class Service:
    """The routes. ``person_header`` is believed: nobody but the proxy may reach them."""

    def __init__(self, issuer: TokenIssuer, person_header: str) -> None:
        self._issuer, self._person_header = issuer, person_header
        self.metrics = DoorMetrics()
        self._tokens = Counter(
            "ldp_issuer_tokens",
            "Token requests by outcome: signed, or the code that refused them",
            ["outcome"],
            registry=self.metrics.registry,
        )
        self._directory = {
            "issuer-request-uri": REQUEST_PATH,
            "token-keys": [{"token-type": 2, "token-key": key + "=" * (-len(key) % 4)} for key in issuer.public_keys],
        }
        self.routes = (
            Route("POST", REQUEST_PATH, self.sign, longest=REQUEST_BYTES),
            Route("GET", DIRECTORY_PATH, self.show),
        )
        self.watching = (
            Route("GET", "/healthz", self.health),
            Route("GET", "/readyz", self.readiness),
            Route("GET", "/metrics", self.exposition),
        )

    async def sign(self, request: web.Request) -> web.Response:
        """Sign a person's request, in as many pieces as it comes."""
        try:
            signed = await asyncio.to_thread(self._issuer.sign, self._person(request), await _body(request))
        except LdpError as refused:
            self._tokens.labels(refused.code).inc()
            raise
        self._tokens.labels("signed").inc()
        return web.Response(body=signed, content_type=RESPONSE_TYPE, headers={"Cache-Control": "no-store"})

    async def show(self, _request: web.Request) -> web.Response:
        """The keys (RFC 9578, section 4): of answers, and behind it the one for relays."""
        return web.json_response(self._directory, content_type=DIRECTORY_TYPE)

    async def health(self, _request: web.Request) -> web.Response:
        """The process runs."""
        return web.json_response({"status": "ok"})

    async def readiness(self, _request: web.Request) -> web.Response:
        """Readiness: the file of counts takes a write."""
        await asyncio.to_thread(self._issuer.check)
        return web.json_response({"status": "ready"})

    async def exposition(self, _request: web.Request) -> web.Response:
        """Counts and times in Prometheus' exposition format."""
        return web.Response(body=await self.metrics.exposition(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    def _person(self, request: web.Request) -> str:
        """The person whom the proxy names, in one header: of two, one may be the client's own."""
        names = request.headers.getall(self._person_header, [])
        if len(names) > 1:
            text = f"{self._person_header} came {len(names)} times; the proxy in front has to strip what comes in"
            raise LdpError("two-people", text)
        if not names or not names[0].strip():
            raise LdpError("no-person", f"the proxy in front names nobody in {self._person_header}")
        return names[0]


async def _body(request: web.Request) -> bytes:
    if request.content_type != REQUEST_TYPE:
        raise LdpError("wrong-media-type", f"send {REQUEST_TYPE}")
    if request.content_length is None:
        raise LdpError("length-required", f"a request has a Content-Length, of {REQUEST_BYTES}")
    if request.content_length != REQUEST_BYTES:
        raise LdpError("malformed-request", f"a request has {REQUEST_BYTES} bytes, not {request.content_length}")
    try:
        return await request.content.readexactly(REQUEST_BYTES)
    except (IncompleteReadError, ConnectionError):
        raise LdpError("malformed-request", "the connection ended within the request") from None


def make_app(routes: Sequence[Route], metrics: DoorMetrics) -> web.Application:
    """An application that answers from these routes, and whatever it is in words of ours."""
    app = web.Application(middlewares=[watched])
    for route in routes:
        app.router.add_route(route.method, route.path, _answering(route.handler, route.path, route.method, metrics))
        refuse = partial(_refuse, "method-not-allowed", f"this takes {route.method}")
        app.router.add_route("*", route.path, _answering(refuse, route.path, "other", metrics))
    nothing = partial(_refuse, "not-found", "there is nothing at this path")
    app.router.add_route("*", "/{path:.*}", _answering(nothing, "none", "any", metrics))
    return app


async def _refuse(code: str, detail: str, _request: web.Request) -> web.Response:
    raise LdpError(code, detail)


def _answering(handler: Handler, path: str, method: str, metrics: DoorMetrics) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        started = time.perf_counter()
        try:
            response = await handler(request)
        except LdpError as refused:
            metrics.refusals.labels(refused.code).inc()
            if STATUSES.get(refused.code, 500) >= 500:
                LOG.error("nothing was signed", extra={"reason": kind_of(refused)})
            response = _problem(refused.code, str(refused))
        except Exception as error:  # Whatever it is, the client gets a document and not a traceback.
            LOG.error("internal error", extra={"reason": kind_of(error)}, exc_info=error)
            response = _problem("internal-error", "the issuer failed; nothing was signed")
        response.headers.update(SECURITY_HEADERS)
        metrics.count_request(path, method, response.status, time.perf_counter() - started)
        return response

    return answer


def _problem(code: str, detail: str) -> web.Response:
    status = STATUSES.get(code, 500)
    document = {"type": "about:blank", "status": status, "code": code, "detail": detail}
    return web.json_response(document, status=status, content_type=PROBLEM_TYPE)


async def serve(service: Service, place: tuple[str, int], operations: tuple[str, int] | None) -> None:
    """Serve until SIGTERM or Ctrl-C, and then answer what is there; a place is a host and a port. Raises LdpError where
    one is taken.
    """
    raise_limit(LIMITS.connections)
    doors: list[tuple[Sequence[Route], tuple[str, int], str]] = [(service.routes, place, PUBLIC)]
    doors += [] if operations is None else [(service.watching, operations, "operations")]
    runners, accepting, addresses = [], [], []
    try:
        for routes, wanted, name in doors:
            runner = make_runner(make_app(routes, service.metrics), LIMITS)
            await runner.setup()
            runners.append(runner)
            connections = Connections(LIMITS, service.metrics, name)
            bound = _bind(*wanted)
            addresses.append(f"http://{wanted[0]}:{bound.getsockname()[1]}")
            await listen(runner, bound, connections)
            accepting.append(connections)
        watched_at = "".join(f", watched at {one}" for one in addresses[1:])
        say(f"signs at {addresses[0]}{REQUEST_PATH}{watched_at}")
        ended = asyncio.Event()
        for one in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(one, ended.set)
        await ended.wait()
        LOG.info("stopping")
    finally:
        await end_connections(runners, accepting, LIMITS.drain_seconds)
    LOG.info("stopped")


def _bind(host: str, port: int) -> socket.socket:
    try:
        return bind(host, port)
    except OSError as error:
        raise LdpError("port-taken", f"cannot listen: {error.strerror}") from None
