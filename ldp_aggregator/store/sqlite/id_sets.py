"""The ids of all campaigns as the writer of a store holds them: who is new is decided here, without reading a file.

What is inserted is staged until its transaction has committed. Where another process has written to the database since,
what is held is compared with the tables before it is used.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from ldp_aggregator.store.batch import Batch, Settlement
from ldp_aggregator.store.runs import merging
from ldp_aggregator.store.runs.files import Run, open_run
from ldp_aggregator.store.runs.filters import Hashes, new_secret
from ldp_aggregator.store.runs.keys import RECORD_BYTES, Keys, Recent, keys_of
from ldp_aggregator.store.sqlite import ids


@dataclass
class Held:
    """The ids of one campaign. ``flushing`` are those that a run is being made of: all up to number ``flushed``."""

    campaign: str
    runs: dict[str, Run] = field(default_factory=dict)
    flushing: Recent | None = None
    flushed: int = 0
    recent: Recent = field(default_factory=Recent)
    last: int = 0
    """Number of the last blob that is in here."""
    fresh_secret: int = field(default_factory=new_secret)

    @property
    def secret(self) -> int:
        """What the next run's filter is to be hashed with."""
        return next((run.filter.secret for run in self.runs.values()), self.fresh_secret)

    @property
    def is_due(self) -> bool:
        """Whether the recent ones are enough for a run."""
        return merging.is_due(len(self.recent), self.stored)

    @property
    def stored(self) -> int:
        """How many are in runs."""
        return sum(map(len, self.runs.values()))

    @property
    def backlog(self) -> int:
        return len(self.recent) + (0 if self.flushing is None else len(self.flushing))

    def known(self, wanted: Keys) -> dict[int, bytes]:
        """Position to digest of the ids that are in here."""
        found = self.recent.find(wanted)
        if self.flushing is not None:
            found += self.flushing.find(wanted)
        hashes = Hashes(wanted)
        found += [run.find(hashes) for run in self.runs.values()]
        return {
            position: digest
            for positions, digests in found
            if len(positions)
            for position, digest in zip(
                positions.tolist(), map(bytes, digests.astype("<u8")[:, None].view(np.uint8)), strict=True
            )
        }


class IdSets:
    """Belongs to the thread that writes."""

    def __init__(self) -> None:
        self._held: dict[int, Held] = {}
        self._stale: set[int] = set()
        self._staged: dict[int, Keys] = {}
        self._seen_version: int | None = None

    def insert(self, db: sqlite3.Connection, number: int, batch: Batch, room: int | None) -> Settlement:
        """Store the ids that are new, ``room`` of them at most, inside a write transaction."""
        records = batch.candidates
        held = self.held(db, number)
        known = held.known(wanted := keys_of(records.tobytes()))
        if known or (room is not None and len(records) > room):
            inserted = batch.earliest(known, len(records) if room is None else room)
            settlement = batch.settle(known, inserted if len(inserted) < len(records) - len(known) else None)
            records = records[inserted]
            wanted = Keys(wanted.high[inserted], wanted.low[inserted], wanted.digest[inserted])
        else:
            settlement = batch.settle({})
        if len(records):
            ids.add_recent(db, number, held.last + 1, records.tobytes())
            self._staged[number] = wanted
        return settlement

    def keep(self) -> None:
        """The transaction has committed."""
        for number, staged in self._staged.items():
            held = self._held[number]
            held.recent.add(staged)
            held.last += 1
        self._staged.clear()

    @property
    def staged(self) -> frozenset[int]:
        """Campaigns with ids that wait for their transaction."""
        return frozenset(self._staged)

    def forget(self, keep: frozenset[int] = frozenset()) -> None:
        """The transaction did not commit, or nobody knows (but for those to ``keep``): the tables say what is in."""
        for number in self._staged.keys() - keep:
            self._stale.add(number)
            del self._staged[number]

    def held(self, db: sqlite3.Connection, number: int) -> Held:
        """The ids of a campaign, as the tables have them inside the transaction."""
        version = db.execute("PRAGMA data_version").fetchone()[0]
        if version != self._seen_version:
            self._stale |= set(self._held)
            self._seen_version = version
        held = self._held.get(number)
        if held is None or (number in self._stale and not _refresh(db, number, held)):
            held = self._held[number] = _load(db, number)
        self._stale.discard(number)
        return held

    def of(self, number: int) -> Held:
        """A campaign's ids as they are held; it was asked for before."""
        return self._held[number]

    def may_have(self, number: int, runs: Collection[str]) -> bool:
        """Whether these runs are a campaign's, as far as is known."""
        held = self._held.get(number)
        return held is None or held.runs.keys() >= set(runs)

    def reload(self, number: int) -> None:
        """Whoever asks next gets what the tables have."""
        self._held.pop(number, None)

    def clear(self) -> None:
        """So for all: campaigns may have gone."""
        self._held.clear()

    def to_flush(self) -> int | None:
        """A campaign whose recent ids are enough for a run."""
        return next((number for number, held in self._held.items() if held.is_due), None)

    def to_merge(self, but_for: Collection[int]) -> tuple[int, list[str]] | None:
        """A campaign, and those of its runs that are to become one."""
        for number, held in self._held.items():
            if number in but_for:
                continue
            if names := merging.crowded({name: len(run) for name, run in held.runs.items()}):
                return number, names
        return None

    def is_behind(self) -> bool:
        """Whether runs are written more slowly than ids come."""
        return any(merging.is_behind(held.backlog) for held in self._held.values())


def _load(db: sqlite3.Connection, number: int) -> Held:
    """Everything, from the tables."""
    name = ids.campaign_id(db, number)
    held = Held(name, {run: open_run(ids.folder(db) / run, name) for run in ids.run_sizes(db, number)})
    _read_recent(db, number, held)
    return held


def _refresh(db: sqlite3.Connection, number: int, held: Held) -> bool:
    """Add what somebody else has written; False where that is not all that has changed."""
    same_runs = ids.run_sizes(db, number).keys() == held.runs.keys()
    if not same_runs or ids.recent_bytes(db, number, held.last) != RECORD_BYTES * held.backlog:
        return False
    _read_recent(db, number, held)
    return True


def _read_recent(db: sqlite3.Connection, number: int, held: Held) -> None:
    for place, records in ids.recent_after(db, number, held.last):
        held.recent.add(keys_of(records))
        held.last = place
