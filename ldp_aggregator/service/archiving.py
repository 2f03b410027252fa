"""Whether a server archives what it counts, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldp_aggregator.service.settings import Settings, SettingsError
from ldp_aggregator.store import Store
from ldp_aggregator.store.contract import Counting
from protocols import Campaign

if TYPE_CHECKING:
    from ldp_aggregator.archive.keeping import ArchivedCounts


async def counts_of(store: Store, settings: Settings) -> Counting:
    """What counts reports: the store alone, or with an archive that first gets what an earlier process left over.

    Raises SettingsError where the archive cannot be written to here, StoreError where it does not answer.
    """
    if settings.archive is None:
        return store
    counts = _archived(store, settings.archive, settings.archive_slots)
    open_ones = [
        Campaign.parse(await store.document(state.id), state.id)
        for state in await store.campaigns()
        if not state.federated and state.life.sealed is None
    ]
    await counts.recover(open_ones)
    return counts


def _archived(store: Store, url: str, slots: int) -> ArchivedCounts:
    try:
        # pyarrow takes a while to import, and who does not archive need not have it.
        from ldp_aggregator.archive.keeping import Archive, ArchivedCounts
        from ldp_aggregator.archive.places import open_place
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"setting archive: {error.name} is not installed; archives need pip install 'ldp-bayes[archive]'"
        ) from None
    return ArchivedCounts(store, Archive(open_place(url), slots))
