"""The parts that an install's campaigns and scopes share; and how it tells a copied storage from its own."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ldp_client.errors import RefusedError, StorageError
from ldp_client.storage.contract import MARK, Transaction, pack, unpack

if TYPE_CHECKING:
    from ldp_client.delivery.background import BackgroundDriver
    from ldp_client.delivery.permits import DevicePermits
    from ldp_client.delivery.sender import Sender
    from ldp_client.network.aggregator import Aggregator
    from ldp_client.network.transport import Transport
    from ldp_client.policy import Policy
    from ldp_client.runtime import Clock
    from ldp_client.storage.contract import Cache, Storage
    from ldp_client.storage.location import Marker
    from protocols import Coins

_MARK_BYTES: Final = 16
"""So many that no earlier state of any ledger had the same ones."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Install:
    """Everything that an install's campaigns and scopes share. Storage and sender are those of all scopes."""

    storage: Storage
    cached: Storage
    cache: Cache
    marker: Marker | None
    transport: Transport
    clock: Clock
    coins: Coins | None
    policy: Policy
    permits: DevicePermits
    sender: Sender
    driver: BackgroundDriver

    def aggregator(self, url: str, campaign_id: str, publisher: str | Collection[str] | None) -> Aggregator:
        """The aggregator of a campaign, believed as far as ``publisher`` signs; None believes it. Raises
        ConfigurationError.
        """
        where = (url, campaign_id, self.transport, self.clock, self.policy)
        if publisher is None:
            from ldp_client.network.aggregator import Aggregator

            return Aggregator(*where)
        from ldp_client.network.publisher import SignedAggregator

        return SignedAggregator(*where, keys=publisher, storage=self.storage)

    def refuse_copies(self, transaction: Transaction) -> bytes | None:
        """The mark of the storage's state, None where it has none yet. Raises RefusedError for a copy."""
        stored = None if self.marker is None else transaction.get(MARK)
        if self.marker is None or stored is None:
            return None
        mark: bytes = unpack(MARK, stored)
        try:
            held = self.marker.holds(mark)
        except OSError as error:
            raise _marker_problem(error) from None
        if not held:
            raise RefusedError(
                "copied-storage",
                "the storage file is a copy, or was restored from a backup: what it was copied from may have answered. "
                "If it was moved and is the only one, call Device.adopt()",
            )
        return mark

    def mark(self, transaction: Transaction, before: bytes | None) -> bytes | None:
        """Give the storage's new state a mark, valid beside the former one until :meth:`settle_mark`."""
        if self.marker is None:
            return None
        mark = os.urandom(_MARK_BYTES)
        try:
            self.marker.write(*(one for one in (before, mark) if one is not None))
        except OSError as error:
            raise _marker_problem(error) from None
        transaction.put(MARK, pack(MARK, mark))
        return mark

    def settle_mark(self, mark: bytes | None) -> None:
        """The transaction of :meth:`mark` is on disk: the former state is history."""
        if self.marker is not None and mark is not None:
            # One that fails leaves both valid, and the next contribution repairs it.
            with contextlib.suppress(OSError):
                self.marker.write(mark, durable=False)


def _marker_problem(error: OSError) -> StorageError:
    return StorageError("storage-read-only" if isinstance(error, PermissionError) else "storage-unavailable")
