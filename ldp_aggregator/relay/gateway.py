"""The relay's routes: devices speak to it as they would to the aggregator, or, where their campaign has a gateway, as
to any relay of Oblivious HTTP (RFC 9458), sealed; a sealed upload is answered 202 when it is on disk, for what it
becomes is not known yet. And, on a door of their own, those for who watches it, without secrets.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from email.message import Message
from functools import partial
from typing import Any, Final

from ldp_aggregator.relay.door import ANY, MOST_CONNECTIONS, Answer, Counts, Door, RefusedError, Request, Route
from ldp_aggregator.relay.forwarding import Relay
from ldp_aggregator.relay.people import NotAdmittedError
from ldp_client.errors import TransportError
from ldp_client.policy import GATEWAY_TIMEOUT, LARGEST_UPLOAD
from ldp_protocols import DocumentError, LdpError
from ldp_protocols.oblivious import LONGEST_SEALED, REQUEST_TYPE
from ldp_protocols.tokens import RELAY_HEADER
from ldp_protocols.wire import MEDIA_TYPE

SEALED_PATH: Final = "/ohttp"
"""Path that takes sealed uploads."""
EXPOSITION: Final = "text/plain; version=0.0.4; charset=utf-8"
"""Prometheus' text format."""

Admission = Callable[[str, Mapping[str, str]], Awaitable[bool]]
"""Function from campaign id and headers of an upload to whether it is admitted, as the aggregator has it."""


def device_routes(relay: Relay, admission: Admission | None = None) -> tuple[Route, ...]:
    """The routes for devices. ``admission`` is asked before an upload is read: without it a batch may be one device,
    and the reports that somebody made up around its own.
    """
    path = f"/v1/campaigns/{relay.campaign_id}"
    check = None if admission is None else partial(_check, admission, relay.campaign_id)
    taking = partial(Route, "POST", check=check)
    return (
        taking(f"{path}/reports", partial(_collect, relay), media_type=MEDIA_TYPE, longest=LARGEST_UPLOAD),
        taking(SEALED_PATH, partial(_collect_sealed, relay), media_type=REQUEST_TYPE, longest=LONGEST_SEALED),
        Route("GET", path, partial(_fetched, lambda **timeout: relay.campaign(**timeout).document)),
        Route("GET", f"{path}/model", partial(_fetched, relay.model, absent=("no-model",))),
        Route("GET", f"{path}/state", partial(_fetched, relay.state)),
        Route("GET", "/v1/directories/(.*)", partial(_directory, relay)),
        Route(ANY, "/v1/campaigns/.*", _unknown),
    )


def watching_routes(relay: Relay, counts: Counts) -> tuple[Route, ...]:
    """The routes for who watches it; ``counts`` are those of the door for devices."""
    return (
        Route("GET", "/healthz", lambda _: Answer(200, b'{"status": "ok"}')),
        Route("GET", "/readyz", partial(_readiness, relay)),
        Route("GET", "/metrics", partial(_metrics, relay, counts)),
    )


class Gateway(Door):
    """Serves one relay to devices."""

    def __init__(
        self,
        relay: Relay,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        timeout: float = GATEWAY_TIMEOUT,
        most_connections: int = MOST_CONNECTIONS,
        admission: Admission | None = None,
    ) -> None:
        routes = device_routes(relay, admission)
        super().__init__(routes, host, port, seconds=timeout, most_connections=most_connections)

    @property
    def url(self) -> str:
        """The base URL for clients on this machine."""
        return f"http://127.0.0.1:{self.server_port}"


def _check(admission: Admission, campaign_id: str, headers: Message[str, str]) -> None:
    if not asyncio.run(_ask(admission, campaign_id, headers)):
        raise RefusedError(403, "not-admitted")


async def _ask(admission: Admission, campaign_id: str, headers: Any) -> bool:
    return await admission(campaign_id, headers)


def _collect(relay: Relay, request: Request) -> Answer:
    authorization = request.headers.get("Authorization")
    refused = _store(partial(relay.collect, request.body, authorization, timeout=request.patience))
    return Answer(200, json.dumps({"rejected": list(refused.items())}).encode("ascii"))


def _collect_sealed(relay: Relay, request: Request) -> Answer:
    _store(partial(relay.collect_sealed, request.body, request.headers.get(RELAY_HEADER), timeout=request.patience))
    return Answer(202)


def _store(keep: Callable[[], Any]) -> Any:
    try:
        return keep()
    except NotAdmittedError as error:
        raise RefusedError(401, error.code, str(error)) from None
    except DocumentError as error:
        raise RefusedError(400, error.code, str(error)) from None
    except LdpError as error:
        raise RefusedError(503, error.code, again=True) from None


def _directory(relay: Relay, request: Request) -> Answer:
    (key,) = request.groups
    return _fetched(partial(relay.directory, key), request, absent=None)


def _fetched(fetch: Callable[..., bytes], request: Request, absent: Sequence[str] | None = ()) -> Answer:
    """A document of the aggregator. ``absent`` are the codes that mean it has none, None if every 404 does: the device
    gets a 404; any other failure is a 503.
    """
    try:
        return Answer(200, fetch(timeout=request.patience))
    except LdpError as error:
        is_absent = isinstance(error, TransportError) and error.status == 404
        if error.code in absent if absent is not None else is_absent:
            raise RefusedError(404, error.code) from None
        raise RefusedError(503, error.code, again=True) from None


def _unknown(_: Request) -> Answer:
    raise RefusedError(404, "unknown-campaign", "this relay is another campaign's")


def _readiness(relay: Relay, request: Request) -> Answer:
    """Readiness: the relay has the campaign and room for reports."""
    try:
        relay.campaign(timeout=request.patience)
        if relay.room(timeout=request.patience) > 0:
            return Answer(200, b'{"status": "ready"}')
    except LdpError as error:
        raise RefusedError(503, error.code, again=True) from None
    raise RefusedError(503, "queue-full", again=True)


def _metrics(relay: Relay, counts: Counts, request: Request) -> Answer:
    lines = [*_series(relay, counts, request.patience), ""]
    return Answer(200, "\n".join(lines).encode("ascii"), {"Content-Type": EXPOSITION})


def _series(relay: Relay, counts: Counts, patience: float) -> Iterator[str]:
    """Metrics in Prometheus' text format; nothing that a device has sent is in any of them."""
    yield from _family("ldp_relay_requests_total", "counter", "Requests by route, method and status")
    for (route, method, status), number in sorted(counts.answered.items()):
        yield f'ldp_relay_requests_total{{route="{route}",method="{method}",status="{status}"}} {number}'
    yield from _family("ldp_relay_refusals_total", "counter", "Requests and connections refused, by the problem's code")
    for code, number in sorted(counts.refused.items()):
        yield f'ldp_relay_refusals_total{{code="{code}"}} {number}'
    yield from _family("ldp_relay_connections", "gauge", "Open connections of devices")
    yield f"ldp_relay_connections {counts.open}"
    try:
        gauges = {
            "ldp_relay_gathering": ("Devices whose reports wait for others", relay.gathering(timeout=patience)),
            "ldp_relay_missing": ("Devices that are missing to a whole batch", relay.missing(timeout=patience)),
            "ldp_relay_expired": ("Uploads whose batch did not fill in time", relay.expired(timeout=patience)),
            "ldp_relay_queued": ("Reports, sealed or not, on their way", relay.queued(timeout=patience)),
            "ldp_relay_room": ("Reports that may be kept beside those that wait", relay.room(timeout=patience)),
        }
    except LdpError:
        gauges = {}
    gauges["ldp_relay_storage"] = ("1 where the storage answers", int(bool(gauges)))
    gauges["ldp_relay_failing"] = ("1 where the last try to forward failed", int(relay.problem is not None))
    for name, (text, value) in gauges.items():
        yield from _family(name, "gauge", text)
        yield f"{name} {value}"


def _family(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
