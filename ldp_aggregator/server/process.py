"""One server process: open the store, listen, say so, serve until told to stop, drain."""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from ldp_aggregator.server.app import LOG, make_apps
from ldp_aggregator.server.context import Campaigns, Context
from ldp_aggregator.server.derived_models import FederatedModels
from ldp_aggregator.server.ingest import Ingest
from ldp_aggregator.server.listener import bind, listen, url_of
from ldp_aggregator.server.metrics import Metrics
from ldp_aggregator.service.settings import Settings, SettingsError
from ldp_aggregator.store import StoreError, open_store
from ldp_aggregator.store.contract import Store

DUE_SECONDS: Final = 30.0
"""How often campaigns that are over are closed. Uploads are refused on time anyway; this drops the ids."""


@dataclass(frozen=True)
class Listeners:
    """The two sockets of a server, bound before any process serves them."""

    public: socket.socket
    admin: socket.socket

    @classmethod
    def bind(cls, settings: Settings) -> Listeners:
        """Raises OSError."""
        public = bind(settings.host, settings.port)
        try:
            return cls(public, bind(settings.admin_host, settings.admin_port))
        except OSError:
            public.close()
            raise

    def addresses(self, settings: Settings) -> Addresses:
        return Addresses(url_of(self.public, tls=settings.tls_key is not None), url_of(self.admin, tls=False))


@dataclass(frozen=True)
class Addresses:
    """Where a running server listens."""

    public: str
    admin: str


async def serve(settings: Settings, listeners: Listeners, ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT, then stop accepting, answer what was accepted, commit it and return."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    tls = load_tls(settings)
    loop.add_signal_handler(signal.SIGHUP, _reload_tls, settings, tls)
    async with running(settings, listeners, tls=tls):
        ready()
        await stop.wait()
        LOG.info("stopping")
    LOG.info("stopped")


@asynccontextmanager
async def running(
    settings: Settings, listeners: Listeners, *, store: Store | None = None, tls: ssl.SSLContext | None = None
) -> AsyncIterator[None]:
    """A server on its listeners for as long as the block lasts. A store that is passed in is not closed."""
    opened = store or await open_store(settings.data, settings.database_address)
    limits, metrics = settings.limits, Metrics()
    ingest = Ingest(opened, metrics, queue_bytes=limits.queue_bytes, group_reports=limits.group_reports)
    models = FederatedModels(opened, settings.federation_groups)
    context = Context(opened, ingest, metrics, settings, Campaigns(opened), models)
    writer = asyncio.create_task(ingest.run())
    keeper = asyncio.create_task(_close_due(opened, metrics))
    runners = [
        web.AppRunner(app, handle_signals=False, shutdown_timeout=limits.drain_seconds) for app in make_apps(context)
    ]
    servers = []
    try:
        for runner, bound, secure in zip(runners, (listeners.public, listeners.admin), (tls, None), strict=True):
            await runner.setup()
            servers.append(await listen(runner, bound, limits, secure))
        yield
    finally:
        for server in servers:
            server.close()
        for runner in runners:
            await runner.cleanup()
        ingest.drain()
        await writer
        keeper.cancel()
        with suppress(asyncio.CancelledError):
            await keeper
        if store is None:
            await opened.close()


def load_tls(settings: Settings) -> ssl.SSLContext | None:
    """The TLS context of the public listener, None where it speaks plain HTTP."""
    if settings.tls_certificate is None or settings.tls_key is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(settings.tls_certificate, settings.tls_key)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(f"tls_certificate and tls_key cannot be loaded: {error}") from None
    return context


def _reload_tls(settings: Settings, context: ssl.SSLContext | None) -> None:
    """Connections that are open keep the old certificate. A pair that does not load leaves the old one in use."""
    try:
        # A context of its own first: a pair that does not fit together must not end up half loaded.
        if load_tls(settings) is not None and context is not None:
            context.load_cert_chain(str(settings.tls_certificate), str(settings.tls_key))
        LOG.info("certificate reloaded")
    except (SettingsError, OSError, ssl.SSLError) as error:
        LOG.error("certificate not reloaded", extra={"reason": str(error)})


async def _close_due(store: Store, metrics: Metrics) -> None:
    while True:
        try:
            for campaign_id in await store.close_due():
                LOG.info("campaign closed", extra={"campaign": campaign_id})
        except StoreError as error:
            metrics.store_errors.inc()
            LOG.error("store error", extra={"reason": str(error)})
        await asyncio.sleep(DUE_SECONDS)
