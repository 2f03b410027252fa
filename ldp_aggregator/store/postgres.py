"""The store of several instances: PostgreSQL through asyncpg, nothing kept in the instances themselves.

* Ids go in sorted, so that two instances lock them in the same order. A group of few reports, all of them new, is one
  statement and one way to the database and back. Each statement carries the condition under which a campaign takes
  reports, so that nothing has to be asked before; where it does not hold, nothing is done.
* A commit appends a part to the tally and never touches a row that another instance writes. Parts are compacted by
  whoever has appended :data:`COMPACT_AT` of them; a part is deleted by exactly one compactor, which adds it up.
* Counting holds a lock on the campaign's row that others who count share, closing it one that nobody shares, and
  shortly: nothing is counted once it is closed. A campaign with a greatest number of reports is counted by one at a
  time.
* Serialisation failures, deadlocks and lost connections are retried a few times. Retrying a transaction whose commit
  was lost on the way back is safe: its ids are there or they are not.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import asyncpg
import numpy as np

from ldp_aggregator.counting.parts import COMPACT_AT, encode_part
from ldp_aggregator.counting.payloads import DIGEST_BYTES
from ldp_aggregator.mechanisms.analysis import Rows
from ldp_aggregator.store import contract, decisions
from ldp_aggregator.store.contract import (
    LOG,
    Clock,
    Outcome,
    Restored,
    StoreError,
    Submission,
    kind_of,
)
from ldp_aggregator.store.decisions import RECORD_BYTES, Batch, CampaignRow, Settlement, in_order
from ldp_aggregator.store.postgres_sessions import PIECE, PostgresConnection, Sessions, take_back
from ldp_aggregator.store.sql import campaigns
from ldp_aggregator.store.sql.published import renew
from ldp_aggregator.store.sql.rights import forget_rights
from ldp_aggregator.store.sql.store import Damage, Store, findings
from ldp_aggregator.store.sql.tables import Result, SqlConnection, Work, writing
from ldp_protocols import Campaign
from ldp_protocols.framing import ID_BYTES

_WRITE_A_ROW: Final = "UPDATE schema_version SET version = version"

SMALL: Final = 256
"""Reports that are looked up and counted in one statement, where all of them are new. Of more some hardly ever are not,
and looking every one up costs more than asking twice."""

_OPEN: Final = (
    "salt IS NULL AND max_reports IS NULL AND closed IS NULL "
    "AND (opens IS NULL OR opens <= coalesce($1::timestamptz, clock_timestamp())) "
    "AND (closes IS NULL OR closes > coalesce($1::timestamptz, clock_timestamp())) "
    "AND (held_until IS NULL OR held_until <= clock_timestamp())"
)
"""Condition that a campaign takes reports at ``$1``, by default now.

Where the lock on its row had to be waited for, it is asked again of the row as it is then.
"""
CHECK_BYTES: Final = 4
STORED_BYTES: Final = RECORD_BYTES + CHECK_BYTES
"""An id, its digest, and a CRC-32 of the campaign's id and both; the database keeps it behind the digest."""

_ID: Final = f"substring(records FROM at + 1 FOR {ID_BYTES})"
_DIGEST: Final = f"substring(records FROM at + {ID_BYTES + 1} FOR {DIGEST_BYTES + CHECK_BYTES})"

_AT_ONCE: Final = f"""
WITH found AS (
    SELECT number, id FROM campaigns WHERE id = ANY($2::text[]) AND {_OPEN} ORDER BY id FOR KEY SHARE
), asked AS (
    SELECT found.number, records, reports, vouched, least_batch, digest, checked, sums
    FROM unnest(
        $2::text[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bytea[], $8::bigint[], $9::bytea[]
    ) AS given (name, records, reports, vouched, least_batch, digest, checked, sums) JOIN found ON found.id = given.name
), keys AS (
    SELECT number, {_ID} AS id, {_DIGEST} AS digest
    FROM asked CROSS JOIN LATERAL generate_series(0, length(records) - 1, {STORED_BYTES}) AS at
), known AS (
    SELECT number FROM keys WHERE EXISTS (SELECT 1 FROM ids WHERE ids.campaign = keys.number AND ids.id = keys.id)
), stored AS (
    INSERT INTO ids (campaign, id, digest)
    SELECT number, id, digest FROM keys WHERE number NOT IN (SELECT number FROM known) ORDER BY number, id
), counted AS (
    INSERT INTO parts (campaign, reports, vouched, least_batch, digest, checked, sums)
    SELECT * FROM (SELECT number, reports, vouched, least_batch, digest, checked, sums FROM asked) AS part
    WHERE number NOT IN (SELECT number FROM known) RETURNING campaign
)
SELECT found.id FROM counted JOIN found ON found.number = counted.campaign
"""

_IN_BULK: Final = f"""
WITH found AS (SELECT number FROM campaigns WHERE id = $2 AND {_OPEN} FOR KEY SHARE), keys AS (
    SELECT at / {STORED_BYTES} AS position, {_ID} AS id, {_DIGEST} AS digest
    FROM (SELECT $3::bytea AS records) AS given
    CROSS JOIN LATERAL generate_series(0, length(records) - 1, {STORED_BYTES}) AS at
), inserted AS (
    INSERT INTO ids (campaign, id, digest) SELECT number, id, digest FROM found CROSS JOIN keys
    ON CONFLICT DO NOTHING RETURNING id
), old AS (
    SELECT position, (
        SELECT digest FROM ids WHERE ids.campaign = (SELECT number FROM found) AND ids.id = keys.id
    ) AS digest
    FROM keys LEFT JOIN inserted USING (id)
    WHERE inserted.id IS NULL AND (SELECT count(*) FROM inserted) * {STORED_BYTES} < length($3::bytea)
)
SELECT number, (SELECT array_agg(position) FROM old) AS positions, (SELECT array_agg(digest) FROM old) AS digests
FROM found
"""

_STORE: Final = (
    f"INSERT INTO ids (campaign, id, digest) SELECT $1, {_ID}, {_DIGEST} FROM (SELECT $2::bytea AS records) AS given "
    f"CROSS JOIN LATERAL generate_series(0, length(records) - 1, {STORED_BYTES}) AS at"
)


async def count_at_once(db: PostgresConnection, batches: Mapping[str, Batch]) -> dict[str, Sequence[Outcome]]:
    """One statement, which is a transaction of its own: the campaigns that take reports and know none of these.

    Of what is not returned nothing was counted. An id that another instance stores meanwhile fails all of it.
    """
    settled = {name: batch.settle({}) for name, batch in batches.items() if not batch.untimely}
    names = [name for name, settlement in settled.items() if settlement.counted and not settlement.revealed]
    if not names:
        return {}
    records = [checked_records(name, batches[name].candidates) for name in names]
    parts = zip(*(_part(name, settled[name], settled[name].vouched).values() for name in names), strict=True)
    counted = await db.fetch(_AT_ONCE, db.fixed_now, names, records, *parts)
    return {row["id"]: settled[row["id"]].outcomes for row in counted}


def _part(campaign_id: str, settlement: Settlement, vouched: int) -> dict[str, Any]:
    sums = encode_part(settlement.sums)
    return campaigns.part_of(campaign_id, settlement.counted, sums, vouched, settlement.least_batch)


def checked_records(campaign_id: str, records: Rows) -> bytes:
    """Ids and digests as they are stored, each with its check."""
    text, seed = records.tobytes(), zlib.crc32(campaign_id.encode())
    checks = [zlib.crc32(text[at : at + RECORD_BYTES], seed) for at in range(0, len(text), RECORD_BYTES)]
    stored = np.empty((len(records), STORED_BYTES), dtype=np.uint8)
    stored[:, :RECORD_BYTES] = records
    stored[:, RECORD_BYTES:] = np.array(checks, dtype="<u4")[:, None].view(np.uint8)
    return stored.tobytes()


def digest_in(campaign_id: str, report_id: bytes, stored: bytes) -> bytes:
    """The digest of an id, from what is stored beside it. Raises StoreError if either is damaged."""
    digest, check = stored[:DIGEST_BYTES], stored[DIGEST_BYTES:]
    if zlib.crc32(report_id + digest, zlib.crc32(campaign_id.encode())).to_bytes(CHECK_BYTES, "little") != check:
        raise StoreError(f"campaign {campaign_id} is damaged: an id does not agree with its check", contract.DAMAGED)
    return digest


async def count_locked(db: PostgresConnection, campaign_id: str, batch: Batch) -> Sequence[Outcome]:
    """Count what is new of a batch, inside a transaction. Waits for another instance that inserts one of its ids.

    Raises BlockingIOError if another transaction has claimed the campaign.
    """
    if not db.steady.is_settled and decisions.goes_by_time(batch.campaign):
        return await _count_alone(db, campaign_id, batch)
    records = batch.candidates
    in_time = np.flatnonzero(batch.timely)
    found = await db.fetchrow(_IN_BULK, db.fixed_now, campaign_id, checked_records(campaign_id, records[in_time]))
    if found is None:
        return await _count_alone(db, campaign_id, batch)
    number, positions, digests = found
    stored = dict(zip(in_time[list(positions or ())].tolist(), digests or (), strict=True))
    missed = [position for position, digest in stored.items() if digest is None]
    missed += np.flatnonzero(~batch.timely).tolist()
    if missed:  # They were stored while this statement ran, and it does not see them, or are not in time.
        stored |= await _stored_digests(db, number, records, missed)
    settlement = batch.settle(_sound_digests(campaign_id, records, stored))
    await _add(db, campaign_id, number, settlement)
    return settlement.outcomes


async def _count_alone(db: PostgresConnection, campaign_id: str, batch: Batch) -> Sequence[Outcome]:
    """Say why a campaign takes nothing, or count where there is a greatest number: nobody else counts meanwhile."""
    try:
        row = await campaigns.row(db, campaign_id)
        moment = await db.moment()
        refused, bar = decisions.refuse_uploads(row), decisions.bar_of(row, batch.campaign, moment)
        if refused is None and bar is None:
            if row.max_reports is None:
                raise BlockingIOError
            row = await campaigns.row(db, campaign_id, campaigns.ALONE)
            refused, bar = decisions.refuse_uploads(row), decisions.bar_of(row, batch.campaign, moment)
    except StoreError as error:  # It is not here, was deleted, or was being deleted.
        if error.code not in contract.ABSENT:
            raise
        return batch.refused(error.code)
    if refused is not None:  # Whoever seals it holds its lock, and is not waited for.
        return batch.refused(refused)
    records = batch.candidates
    stored = _sound_digests(campaign_id, records, await _stored_digests(db, row.number, records, range(len(records))))
    room = await campaigns.room(db, row) if bar is None else 0
    chosen = batch.earliest(stored, room or 0)
    if len(chosen):
        await db.execute(_STORE, row.number, checked_records(campaign_id, records[chosen]))
    settlement = batch.settle(stored, chosen, bar or (None if room else contract.CLOSING))
    await _add(db, campaign_id, row.number, settlement)
    return settlement.outcomes


async def _add(db: PostgresConnection, campaign_id: str, number: int, settlement: Settlement) -> None:
    vouched = settlement.vouched
    if settlement.revealed and settlement.vouched == settlement.counted:  # Else it takes nothing off, whatever was.
        vouched = decisions.vouched_part(settlement, await campaigns.arrivals(db, await campaigns.row(db, campaign_id)))
    if settlement.counted or vouched:
        await db.execute(campaigns.ADD_PART, number, *_part(campaign_id, settlement, vouched).values())


async def _drop_piece(db: SqlConnection, number: int, after: bytes) -> bytes | None:
    """The last id that was dropped, None if there are no more."""
    last = await db.fetchrow(
        "WITH piece AS (SELECT id FROM ids WHERE campaign = $1 AND id > $2 ORDER BY id LIMIT $3), "
        "gone AS (DELETE FROM ids USING piece WHERE ids.campaign = $1 AND ids.id = piece.id) "
        "SELECT id FROM piece ORDER BY id DESC LIMIT 1",
        *(number, after, PIECE),
    )
    return None if last is None else bytes(last[0])


async def _stored_digests(db: SqlConnection, number: int, records: Rows, positions: Sequence[int]) -> dict[int, bytes]:
    """Position to what is stored beside the id, of those records whose id is in the store."""
    if not len(positions):
        return {}
    wanted = records[np.asarray(positions, dtype=np.int64), :ID_BYTES].tobytes()
    rows = await db.fetch(
        "SELECT wanted.position, ids.digest FROM (SELECT position, "
        f"substring($1::bytea FROM position * {ID_BYTES} + 1 FOR {ID_BYTES}) AS id "
        "FROM generate_series(0, $2::integer - 1) AS position) AS wanted "
        "JOIN ids ON ids.campaign = $3 AND ids.id = wanted.id",
        *(wanted, len(positions), number),
    )
    return {int(positions[position]): digest for position, digest in rows}


def _sound_digests(campaign_id: str, records: Rows, stored: Mapping[int, bytes]) -> dict[int, bytes]:
    return {at: digest_in(campaign_id, records[at, :ID_BYTES].tobytes(), found) for at, found in stored.items()}


HOLD_SECONDS: Final = 5
"""Seconds for which a process that wants a campaign alone keeps others from its lock."""


class PostgresStore(Store):
    """See :class:`ldp_aggregator.store.Store`. :meth:`open` connects and prepares the schema.

    Without a ``clock`` the time is the database's: no instance's clock decides anything for the others.
    """

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._appended: Counter[str] = Counter()
        """Parts that this instance has appended to each campaign since it last compacted them."""

    @classmethod
    async def open(cls, address: str, *, clock: Clock | None = None, read_only: bool = False) -> PostgresStore:
        """``address`` is a ``postgresql://`` URL; what it leaves out comes from libpq's environment variables."""
        return cls(await Sessions.open(address, clock=clock, read_only=read_only))

    async def reconnect(self, address: str) -> None:
        await self._sessions.reconnect(address)

    async def count(self, submissions: Sequence[Submission]) -> list[Outcome]:
        # The database's time, as for everything else; a round trip that only windows need.
        timed = decisions.needs_time(submissions)
        moment = await self._sessions.run(lambda db: db.moment(), "now") if timed else None
        batches = decisions.gather_by_campaign(submissions, moment)
        answers: dict[str, Sequence[Outcome]] = {}
        try:
            if self._sessions.steady.is_settled and sum(len(one.firsts) for one in batches.values()) <= SMALL:
                answers = await self._count_at_once(batches)
            rest = {name: batch for name, batch in batches.items() if name not in answers}
            if rest:
                answers |= await self._sessions.run(partial(_count_together, batches=rest), "count")
        except StoreError as error:
            if error.code not in (contract.STATEMENT, contract.DAMAGED):
                raise
            answers |= await self._count_apart({n: b for n, b in batches.items() if n not in answers})
        for campaign_id, outcomes in answers.items():
            if any(outcome.counted for outcome in outcomes):
                await self._appended_to(batches[campaign_id].campaign)
        return in_order(submissions, answers)

    async def beat(self) -> None:
        """A standby refuses, and so does a database that its provider made read-only."""

        async def beat(db: PostgresConnection) -> None:
            await db.execute(_WRITE_A_ROW)
            await db.moment()

        await self._sessions.run(beat, "beat", attempts=1)

    async def check(self) -> list[Damage]:
        unreadable = (asyncpg.SyntaxOrAccessError, asyncpg.DataCorruptedError)
        work = partial(findings, check_ids=_check_ids, unreadable=unreadable)
        return await self._sessions.run(work, "check", isolation="repeatable_read")

    @writing
    async def renew(self, db: SqlConnection, *, keep_shares: bool = False) -> Restored:
        """Renewal of a database that was restored, as ``restore_store`` does it to a copy of an embedded store."""
        now = await db.now()
        forgotten = await forget_rights(db, now, keep_shares=keep_shares)
        await renew(db, now)
        return forgotten

    async def take_back(self) -> None:
        """Make the store what it was before its tables were brought to this version; it is closed afterwards.

        Raises StoreError if an instance runs on it, or something was written since.
        """
        await self._sessions.run(take_back)

    async def close(self) -> None:
        await self._sessions.close()

    async def _count_at_once(self, batches: Mapping[str, Batch]) -> dict[str, Sequence[Outcome]]:
        try:
            return await self._sessions.run(lambda db: count_at_once(db, batches), "count", isolation=None)
        except StoreError as error:
            if isinstance(error.__cause__, asyncpg.UniqueViolationError):
                return {}
            raise

    async def _count_apart(self, batches: Mapping[str, Batch]) -> dict[str, Sequence[Outcome]]:
        """Count the others where the database refuses some campaigns. Each has a transaction of its own: what is
        counted stays so, whatever becomes of the next.
        """
        answers: dict[str, Sequence[Outcome]] = {}
        for name, batch in batches.items():
            try:
                answers |= await self._sessions.run(partial(_count_together, batches={name: batch}), "count")
            except StoreError as error:  # Whatever is wrong with one, the next gets its turn.
                if error.code not in (contract.STATEMENT, contract.DAMAGED):
                    raise
                answers[name] = self._uncounted(batch, error)
        if all(outcomes[0].refused == contract.UNAVAILABLE for outcomes in answers.values()):
            await self.beat()  # Where that fails too, it is the database, and no campaign.
        return answers

    @writing
    async def _claim(self, db: SqlConnection, campaign_id: str) -> None:
        """Claim of a campaign for a transaction that needs it alone: those who count share a lock, and without a
        claim an unbroken row of them would keep it for ever. It waits for nobody, and ends by itself.
        """
        row = await campaigns.row(db, campaign_id)
        until = await db.fetchrow(f"SELECT clock_timestamp() + interval '{HOLD_SECONDS} s'")
        await campaigns.put(db, row, held_until=None if until is None else until[0])

    async def _forget_ids(self, db: SqlConnection, number: int) -> None:
        """Drop ids in pieces: they are too many for one transaction that others wait for."""

    async def _drop_ids(self, number: int) -> None:
        last: bytes | None = b""
        while last is not None:
            last = await self._sessions.run(lambda db, after=last: _drop_piece(db, number, after), "seal_campaign")  # type: ignore[misc]

    async def _read(self, work: Work[Result], name: str = "") -> Result:
        return await self._sessions.run(work, name)

    _write = _read

    async def _appended_to(self, campaign: Campaign) -> None:
        """A part was appended and is durable; what goes wrong from here on changes no answer."""
        self._appended[campaign.id] += 1
        if self._appended[campaign.id] < COMPACT_AT:
            return
        del self._appended[campaign.id]
        try:
            await self._compact(campaign)
        except StoreError as error:  # The reports are counted; compaction only saves readers some work.
            LOG.warning("a tally was not compacted", extra={"campaign": campaign.id, "reason": kind_of(error)})

    @writing
    async def _compact(self, db: SqlConnection, campaign: Campaign) -> None:
        await campaigns.compact(db, campaign, await campaigns.row(db, campaign.id))


async def _check_ids(db: SqlConnection, row: CampaignRow) -> tuple[int | None, list[str]]:
    """Read every id, a piece at a time."""
    stored = damaged = 0
    after: bytes | None = b""
    statement = "SELECT id, digest FROM ids WHERE campaign = $1 AND id > $2 ORDER BY id LIMIT $3"
    while after is not None:
        piece = await db.fetch(statement, row.number, after, PIECE)
        stored += len(piece)
        for report_id, found in piece:
            try:
                digest_in(row.id, report_id, found)
            except StoreError:
                damaged += 1
        after = piece[-1][0] if piece else None
    problems = [f"{damaged} ids do not agree with their check"] if damaged else []
    if row.life.sealed is None:
        return stored, problems
    return None, [f"it is sealed, and {stored} ids are left; 'campaign close --seal' drops them"] if stored else []


async def _count_together(db: PostgresConnection, batches: Mapping[str, Batch]) -> dict[str, Sequence[Outcome]]:
    answers = {name: await count_locked(db, name, batch) for name, batch in batches.items()}
    if decisions.is_known(answers):
        await db.execute(_WRITE_A_ROW)
    return answers
