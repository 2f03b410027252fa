"""The archive beside a store: the one that a server writes to, and what goes along where a campaign is deleted."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ldp_aggregator.service.settings import Settings, setting_error
from ldp_aggregator.store import Store
from ldp_aggregator.store.contract import TOO_EARLY, Counting, StoreError
from ldp_protocols import Campaign

if TYPE_CHECKING:
    from ldp_aggregator.archive.writer import Archive


async def counts_of(store: Store, settings: Settings) -> Counting:
    """Open what counts reports: the store alone, or with an archive that first gets what an earlier process left over.

    Raises LdpError where the archive cannot be written to here, StoreError where it does not answer.
    """
    archive = await archive_of(store, settings)
    if archive is not None:
        goes_along(store, archive)
    if settings.archive is None or archive is None:
        return store
    await store.note_archive(archive.url)
    open_ones = [
        Campaign.parse(await store.document(state.id), state.id)
        for state in await store.campaigns()
        if not state.federated and state.life.sealed is None and not state.damaged
    ]
    from ldp_aggregator.archive.writer import ArchivedCounts

    counts = ArchivedCounts(store, archive)
    await counts.recover(open_ones)
    return counts


async def archive_of(store: Store, settings: Settings) -> Archive | None:
    """The archive set in the options, else the last that a server wrote to, or None. Raises LdpError, StoreError."""
    address = settings.archive or await store.archived_at()
    if address is None:
        return None
    try:
        # pyarrow takes a while to import, and who does not archive need not have it.
        from ldp_aggregator.archive.locations import open_place
        from ldp_aggregator.archive.writer import Archive
    except ModuleNotFoundError as error:
        raise setting_error(
            f"setting archive: {error.name} is not installed; archives need pip install 'ldp-bayes[archive]'"
        ) from None
    return Archive(open_place(address))


def goes_along(store: Store, archive: Archive) -> None:
    """Have whoever deletes a campaign of the store remove its archived reports first, and whoever seals one find
    nothing pending there: without its ids nobody could tell what of that was counted.
    """

    async def settled(campaign_id: str) -> None:
        left = await asyncio.to_thread(archive.left, campaign_id)
        if left:
            raise StoreError(
                f"{left} files of its archive wait for their commit, and would stay behind; a server that starts with "
                "this archive settles them: seal the campaign then",
                TOO_EARLY,
            )

    async def forget(campaign_id: str) -> None:
        await asyncio.to_thread(archive.forget, campaign_id)

    store.when_deleting(forget)
    store.when_sealing(settled)
