"""One server process: open the store, listen, say so, serve until told to stop, drain."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from ldp_aggregator.server.app import LOG, make_apps
from ldp_aggregator.server.ingest import Ingest
from ldp_aggregator.settings import Settings
from ldp_aggregator.store import StoreError, open_store
from ldp_aggregator.store.contract import Store

DUE_SECONDS: Final = 30.0
"""How often campaigns that are over are closed. Uploads are refused on time anyway; this drops the ids."""


@dataclass(frozen=True)
class Addresses:
    """Where a running server listens."""

    public: str
    admin: str


async def serve(settings: Settings, ready: Callable[[Addresses], None]) -> None:
    """Serve until SIGTERM or SIGINT, then stop accepting, answer what was accepted, commit it and return."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with running(settings) as addresses:
        ready(addresses)
        await stop.wait()
        LOG.info("stopping")


@asynccontextmanager
async def running(settings: Settings, store: Store | None = None) -> AsyncIterator[Addresses]:
    """A server on its listeners for as long as the block lasts. A store that is passed in is not closed."""
    opened = store or await open_store(settings.data, settings.database_address)
    limits = settings.limits
    ingest = Ingest(opened, queue_bytes=limits.queue_bytes, group_reports=limits.group_reports)
    writer = asyncio.create_task(ingest.run())
    keeper = asyncio.create_task(_close_due(opened))
    runners = [
        web.AppRunner(
            app,
            access_log=None,  # An access log would hold the addresses of devices.
            handle_signals=False,
            keepalive_timeout=limits.idle_seconds,
            max_line_size=limits.header_bytes,
            max_field_size=limits.header_bytes,
            shutdown_timeout=limits.drain_seconds,
        )
        for app in make_apps(opened, ingest, settings)
    ]
    try:
        addresses = []
        for runner, host, port in zip(
            runners, (settings.host, settings.admin_host), (settings.port, settings.admin_port), strict=True
        ):
            await runner.setup()
            await web.TCPSite(runner, host, port).start()
            bound = runner.addresses[0]
            addresses.append(f"http://{f'[{bound[0]}]' if ':' in bound[0] else bound[0]}:{bound[1]}")
        yield Addresses(*addresses)
    finally:
        for runner in runners:
            await runner.cleanup()
        ingest.drain()
        await writer
        keeper.cancel()
        with suppress(asyncio.CancelledError):
            await keeper
        if store is None:
            await opened.close()


async def _close_due(store: Store) -> None:
    while True:
        try:
            for campaign_id in await store.close_due():
                LOG.info("campaign closed", extra={"campaign": campaign_id})
        except StoreError as error:
            LOG.error("store error", extra={"reason": str(error)})
        await asyncio.sleep(DUE_SECONDS)
