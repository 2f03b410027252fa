"""What pages are made from. The server hands it over; nothing here is on an upload's way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from ldp_aggregator.dashboard.history import History
from ldp_aggregator.store import Store
from ldp_aggregator.store.clock import Clock, utc_now
from protocols import Campaign


@dataclass(frozen=True)
class Sources:
    """Passed to every page's handler.

    ``campaign`` gives a parsed campaign by its id, ``federated_model`` the model of the shares there are now (None
    before there is one), ``exposition`` the metrics of all processes in Prometheus' format, ``is_well`` whether the
    last write to the store worked, ``queue_age`` for how many seconds an upload waits here. ``count`` takes (path,
    method, status, seconds) of an answer, ``mutated`` the kind of a change that an operator made. ``report_codes`` and
    ``upload_codes`` explain the codes that refuse reports, and whole uploads; ``body_bytes`` is the longest form that
    is read. ``is_archived`` says whether accepted reports are kept one by one; ``behind_tls`` whether
    operators come through a proxy that speaks TLS; ``public_pages`` holds
    pages for everybody as they were drawn.
    """

    store: Store
    campaign: Callable[[str], Awaitable[Campaign]]
    federated_model: Callable[[Campaign], Awaitable[bytes | None]]
    exposition: Callable[[], bytes]
    is_well: Callable[[], bool]
    queue_age: Callable[[], float]
    count: Callable[[str, str, int, float], None]
    mutated: Callable[[str], None]
    report_codes: Mapping[str, str]
    upload_codes: Mapping[str, str]
    body_bytes: int
    is_archived: bool = False
    behind_tls: bool = False
    clock: Clock = utc_now
    history: History = field(default_factory=History)
    public_pages: dict[tuple[str, str, bool], asyncio.Task[bytes]] = field(default_factory=dict)
