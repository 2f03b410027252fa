"""The work that a server does by itself, every half minute: close campaigns that are over, delete what need not be
kept, and look at what operators have to watch and no request tells of: room on the disk, backups, what runs out.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from ldp_aggregator.server.gateway import GatewayKeys
from ldp_aggregator.server.metrics import MOST_CAMPAIGNS, Metrics
from ldp_aggregator.server.sockets.listener import end_of
from ldp_aggregator.service.rights import BACKED_UP, SERVER, recorded
from ldp_aggregator.service.settings import Settings
from ldp_aggregator.store import Store
from ldp_aggregator.store.clocks import Moment
from ldp_aggregator.store.contract import ABSENT, DONE, LOG, CampaignState, StoreError, kind_of
from ldp_aggregator.store.decisions import is_over
from ldp_protocols import Campaign, DocumentError
from ldp_protocols.document.directory import read_directory
from ldp_protocols.document.gateway import Gateway

DUE_SECONDS: Final = 30.0
"""Seconds between two rounds. Uploads are refused on time anyway; a round closes what has been over for a day."""


async def keep(
    store: Store,
    metrics: Metrics,
    *,
    settings: Settings | None = None,
    gateway: GatewayKeys | None = None,
    due: asyncio.Event | None = None,
) -> None:
    """Rounds of housekeeping until cancelled; ``due`` starts one at once. A campaign that cannot be closed or deleted
    is logged and does not hold up the others.
    """
    due = due or asyncio.Event()
    sealed: dict[str, Gateway | None] = {}
    while True:
        await close_once(store, metrics)
        try:
            if settings is not None and settings.keep_closed_days is not None:
                await delete_once(store, metrics, timedelta(days=settings.keep_closed_days))
            states = await store.campaigns()
            # Every open campaign has as many ids as reports.
            metrics.gauges.open_campaigns({state.id: state.reports for state in states if state.life.closed is None})
            if gateway is not None:
                metrics.gauges.note_missing_keys(await missing_keys(store, states, gateway, sealed))
            if settings is not None:
                metrics.gauges.observed = await observed(store, settings)
        except StoreError as error:
            _note_failure(metrics, "store error", error)
        except (OSError, ValueError) as error:
            LOG.error("gauges were not updated", extra={"reason": kind_of(error)})
        with suppress(TimeoutError):
            await asyncio.wait_for(due.wait(), DUE_SECONDS)
        due.clear()


async def close_once(store: Store, metrics: Metrics) -> None:
    """Close what is over, and log it."""
    try:
        closed = await close_due(store, await store.moment())
    except StoreError as error:
        _note_failure(metrics, "store error", error)
        return
    for campaign_id in closed.ids:
        LOG.info("campaign closed", extra={"campaign": campaign_id})
    for campaign_id, failure in closed.failed.items():
        _note_failure(metrics, "campaign not closed", failure, campaign_id)


async def delete_once(store: Store, metrics: Metrics, age: timedelta) -> None:
    """Delete the campaigns that were closed longer ago than they are kept, as this process has seen for a day: what is
    deleted by a wrong clock would not come back.
    """
    moment = await store.moment()
    for state in await store.campaigns():
        if state.life.closed is None or not moment.is_past(state.life.closed + age):
            continue
        try:
            async with recorded(store, SERVER, "delete campaign", state.id, f"closed for {age.days} days"):
                await store.delete_campaign(state.id)
        except Exception as error:
            if isinstance(error, StoreError) and error.code in ABSENT:
                continue  # Another instance was faster.
            _note_failure(metrics, "campaign not deleted", error, state.id)
        else:
            LOG.info("campaign deleted", extra={"campaign": state.id})


def _note_failure(metrics: Metrics, event: str, error: Exception, campaign_id: str | None = None) -> None:
    metrics.store_errors.inc()
    about = {"reason": kind_of(error)} | ({} if campaign_id is None else {"campaign": campaign_id})
    LOG.error(event, extra=about, exc_info=error)


@dataclass(frozen=True, slots=True)
class Closed:
    """The campaigns that were closed, and those that could not be, with what was in the way."""

    ids: tuple[str, ...]
    failed: Mapping[str, Exception]


async def close_due(store: Store, moment: Moment) -> Closed:
    """Close the campaigns whose ``closes`` has passed or that are full, a grace period after that was first seen; look
    at those again that were closed in what is the future now.

    Uploads are refused on time anyway. One that fails keeps no other open. A clock that jumped closes nothing. Raises
    StoreError if the campaigns cannot be listed.
    """
    closed, failed = [], {}
    for state in await store.campaigns() if moment.settled else ():
        life = state.life
        due = state.over_since is not None or is_over(life, state.max_reports, state.reports, moment.now)
        if not (due if life.closed is None else life.closed > moment.now):
            continue
        try:
            if (await store.end_campaign(state.id)).life.closed is not None:
                closed.append(state.id)
        except Exception as error:  # Whatever is wrong with one, the next gets its turn.
            failed[state.id] = error
    return Closed(tuple(closed), failed)


SIGNED: Final = "publish directory"
MOST_ACTS: Final = 1000
"""Entries at the end of the log that are looked at."""
Values = dict[tuple[str, str], float]
"""Values of gauges by metric name and label value, "" if it has no label."""


async def observed(store: Store, settings: Settings) -> Values:
    """Current values of the gauges in :data:`~ldp_aggregator.server.metrics.OBSERVED`. Raises StoreError, OSError."""
    acts = await store.acts(last=MOST_ACTS)
    values = await asyncio.to_thread(_on_disk, settings)
    values["ldp_damaged_campaigns", ""] = store.damaged
    values["ldp_store_info", (await store.origin()).generation] = 1
    values |= {("ldp_campaign_unsigned", name): 1 for name in await _unsigned(store, settings)}
    backups = [act.moment.timestamp() for act in acts if act.act.act == BACKED_UP and act.outcome == DONE]
    if backups:
        values["ldp_last_backup_timestamp_seconds", ""] = max(backups)
    # The publisher's key stands first in what is said of a directory.
    signed = [act for act in acts if act.act.act == SIGNED and act.outcome == DONE]
    for key in {act.act.detail.partition(" ")[0] for act in signed}:
        document = await store.directory(key)
        try:
            if document is not None:
                expires = read_directory(document, key, known=True).expires
                values["ldp_directory_expires_timestamp_seconds", key] = expires.timestamp()
        except DocumentError:
            continue  # It was checked when it came, and devices check it again.
    return values


async def missing_keys(
    store: Store, states: Sequence[CampaignState], gateway: GatewayKeys, sealed: dict[str, Gateway | None]
) -> set[str]:
    """Name each open campaign whose answers are sealed to a key that this process does not have: all of them are lost.
    ``sealed`` keeps what the documents say, which never changes. One that cannot be read hides no other.
    """
    missing, now = set[str](), (await store.moment()).now
    for state in states:
        if state.damaged or state.life.closed is not None:
            continue
        if state.id not in sealed:
            try:
                document = await store.document(state.id)
                sealed[state.id] = (await asyncio.to_thread(Campaign.parse, document, state.id)).gateway
            except (StoreError, DocumentError):  # It was deleted meanwhile, or fails by itself, and says so then.
                continue
        named = sealed[state.id]
        if named is not None and gateway.lacks(named.needed(now)):
            missing.add(state.id)
    return missing


async def _unsigned(store: Store, settings: Settings) -> list[str]:
    """Name the open campaigns that no directory of the publishers in the settings names now."""
    named, now = set[str](), (await store.moment()).now
    for key in settings.publishers:
        document = await store.directory(key)
        with suppress(DocumentError):  # It was checked when it came, and devices check it again.
            if document is not None and (directory := read_directory(document, key, known=True)).expires > now:
                named.update(directory.campaigns)
    states = await store.campaigns() if settings.publishers else []
    return [state.id for state in states if state.life.closed is None and state.id not in named][:MOST_CAMPAIGNS]


def _on_disk(settings: Settings) -> Values:
    values: Values = {}
    if settings.tls_certificate is not None:
        values["ldp_certificate_expires_timestamp_seconds", ""] = _end_of(settings.tls_certificate)
    if settings.database is None:
        values["ldp_free_bytes", ""] = shutil.disk_usage(settings.data).free
        sizes, files = {"database": 0, "wal": 0, "runs": 0, "drafts": 0}, {"runs": 0, "drafts": 0}
        for path in settings.data.rglob("*"):
            with suppress(FileNotFoundError):  # Runs come and go.
                part = _part(path.name)
                sizes[part] += path.stat().st_size if path.is_file() else 0
                if part in files:
                    files[part] += 1
        values |= {("ldp_store_bytes", part): size for part, size in sizes.items()}
        values |= {("ldp_store_files", part): number for part, number in files.items()}
    if settings.archive is not None and "://" not in settings.archive:
        values["ldp_archive_pending_files", ""] = sum(1 for _ in Path(settings.archive).glob("*/pending/*"))
    return values


def _end_of(certificate: Path) -> float:
    """End of a certificate as a timestamp; 0 for one that cannot be read, since a restarted server would not serve."""
    try:
        return end_of(certificate).timestamp()
    except (OSError, ValueError) as error:
        LOG.error("the certificate cannot be read", extra={"reason": kind_of(error)})
        return 0.0


def _part(name: str) -> str:
    if name.endswith("-wal"):
        return "wal"
    if name.endswith(".run"):
        return "drafts" if name.startswith("draft-") else "runs"
    return "database"
