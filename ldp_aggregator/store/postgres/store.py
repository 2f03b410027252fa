"""The store of several instances: PostgreSQL through asyncpg, nothing kept in the instances themselves.

* Ids go in as sorted arrays with ``ON CONFLICT DO NOTHING``, so that two instances lock them in the same order.
* A commit appends a part to the tally and never touches a row that another instance writes. Parts are compacted by
  whoever has appended :data:`COMPACT_AT` of them; a part is deleted by exactly one compactor, which adds it up.
* Counting holds a shared advisory lock on the campaign, closing it an exclusive one: nothing is counted after the
  final tally. A campaign with a greatest number of reports is counted under the exclusive lock.
* Serialisation failures, deadlocks and lost connections are retried a few times. Retrying a transaction whose commit
  was lost on the way back is safe: its ids are there or they are not.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import asyncpg

from ldp_aggregator.counting.parts import COMPACT_AT, encode_part, part_of_tally, tally_of_parts
from ldp_aggregator.store.batch import Batch, gather, group_by_campaign
from ldp_aggregator.store.clock import Clock, utc_now
from ldp_aggregator.store.consistency import Finding, audit_campaign, audit_shares
from ldp_aggregator.store.contract import (
    SALT_BYTES,
    TAKES_SHARES,
    UNKNOWN,
    CampaignState,
    Life,
    Outcome,
    PublishedModel,
    ShareDigests,
    Shares,
    StoredToken,
    StoreError,
    Submission,
    UnknownCampaignError,
)
from ldp_aggregator.store.postgres import schema
from ldp_aggregator.store.postgres import shares as postgres_shares
from ldp_aggregator.store.postgres import statements as sql
from protocols import Campaign

if TYPE_CHECKING:
    from ldp_aggregator.counting.tally import Tally

ATTEMPTS: Final = 6
FIRST_DELAY_SECONDS: Final = 0.05
"""A failed transaction is tried again after a random time below this, doubled each time."""
GIVE_UP_SECONDS: Final = 10.0
"""No transaction is tried again after this: whoever waits is better told to come back."""
MOST_CONNECTIONS: Final = 6
CONNECT_SECONDS: Final = 5.0
COMMAND_SECONDS: Final = 30.0

LOG: Final = logging.getLogger("ldp_aggregator")

_PASSING: Final = (
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.InterfaceError,
    OSError,
    asyncio.TimeoutError,
)
"""Failures that another try may not meet."""

Connection = sql.Connection
Result = TypeVar("Result")


class PostgresStore:
    """See :class:`ldp_aggregator.store.contract.Store`. :meth:`open` connects and prepares the schema."""

    def __init__(self, pool: Any, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock
        self._appended: dict[int, int] = {}

    @classmethod
    async def open(cls, address: str, *, clock: Clock = utc_now) -> PostgresStore:
        """``address`` is a ``postgresql://`` URL; what it leaves out comes from libpq's environment variables."""
        try:
            pool = await asyncpg.create_pool(
                address,
                min_size=1,
                max_size=MOST_CONNECTIONS,
                command_timeout=COMMAND_SECONDS,
                timeout=CONNECT_SECONDS,
                server_settings={"synchronous_commit": "on", "search_path": schema.NAME},
            )
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, asyncio.TimeoutError, ValueError) as error:
            # The message of a wrong address may hold the address, and that a password.
            raise StoreError(f"the database cannot be reached ({type(error).__name__})") from None
        store = cls(pool, clock)
        try:
            await store._run(schema.prepare)
        except BaseException:
            await pool.close()
            raise
        return store

    async def create_campaign(
        self, campaign: Campaign, *, max_reports: int | None = None, federated: bool = False
    ) -> bool:
        async def work(db: Connection) -> bool:
            number = await db.fetchval(
                "INSERT INTO campaigns (id, title, document, opens, closes, created, max_reports, salt) "
                "VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (id) DO NOTHING RETURNING number",
                campaign.id,
                campaign.title,
                campaign.document,
                campaign.opens,
                campaign.closes,
                self._clock(),
                max_reports,
                os.urandom(SALT_BYTES) if federated else None,
            )
            if number is None:
                return False
            await db.execute(schema.create_ids(number))
            return True

        return await self._run(work)

    async def document(self, campaign_id: str) -> bytes:
        async def work(db: Connection) -> bytes:
            document = await db.fetchval("SELECT document FROM campaigns WHERE id = $1", campaign_id)
            if document is None:
                raise UnknownCampaignError(campaign_id)
            return bytes(document)

        return await self._run(work)

    async def state(self, campaign_id: str) -> CampaignState:
        async def work(db: Connection) -> CampaignState:
            return sql.state(await sql.row(db, campaign_id))

        return await self._run(work)

    async def campaigns(self) -> list[CampaignState]:
        async def work(db: Connection) -> list[CampaignState]:
            return [sql.state(row) for row in await db.fetch(f"{sql.STATES} ORDER BY number")]

        return await self._run(work)

    async def close_campaign(self, campaign_id: str) -> CampaignState:
        async def work(db: Connection) -> CampaignState:
            number = (await sql.row(db, campaign_id))["number"]
            await sql.lock(db, number, shared=False)
            if (await sql.row(db, campaign_id))["closed"] is None:
                await db.execute("UPDATE campaigns SET closed = $2 WHERE number = $1", number, self._clock())
                await db.execute(f"DROP TABLE {schema.ids_table(number)}")
            return sql.state(await sql.row(db, campaign_id))

        return await self._run(work)

    async def close_due(self) -> list[str]:
        now = self._clock()
        due = [state.id for state in await self.campaigns() if state.life.closed is None and sql.is_over(state, now)]
        for campaign_id in due:
            await self.close_campaign(campaign_id)
        return due

    async def count(self, submissions: Sequence[Submission]) -> list[Outcome]:
        groups = group_by_campaign(submissions)
        batches = {
            campaign_id: gather(submissions[positions[0]].campaign, [submissions[p] for p in positions])
            for campaign_id, positions in sorted(groups.items())
        }

        async def work(db: Connection) -> tuple[list[Outcome], list[int]]:
            outcomes, appended = [Outcome()] * len(submissions), []
            for campaign_id, batch in batches.items():
                number, answers = await self._count_batch(db, campaign_id, batch)
                if number is not None:
                    appended.append(number)
                for position, outcome in zip(groups[campaign_id], answers, strict=True):
                    outcomes[position] = outcome
            return outcomes, appended

        outcomes, appended = await self._run(work)
        for number in appended:
            self._appended[number] = self._appended.get(number, 0) + 1
            if self._appended[number] >= COMPACT_AT:
                self._appended[number] = 0
                await self._compact(number)
        return outcomes

    async def tally(self, campaign_id: str) -> Tally:
        async def work(db: Connection) -> tuple[bytes, list[bytes]]:
            row = await sql.row(db, campaign_id)
            document = await db.fetchval("SELECT document FROM campaigns WHERE number = $1", row["number"])
            return document, await sql.parts(db, row["number"])

        document, parts = await self._run(work)
        return tally_of_parts(Campaign.parse(document), parts)

    async def put_share(self, campaign_id: str, node: str, share: bytes) -> str | None:
        return await self._run(lambda db: postgres_shares.put(db, campaign_id, node, share, self._clock()))

    async def withdraw_share(self, campaign_id: str, node: str) -> str | None:
        return await self._run(lambda db: postgres_shares.withdraw(db, campaign_id, node, self._clock()))

    async def withdraw_node(self, node: str) -> int:
        return await self._run(lambda db: postgres_shares.withdraw_node(db, node))

    async def shares(self, campaign_id: str) -> Shares | None:
        return await self._run(lambda db: postgres_shares.shares(db, campaign_id))

    async def share_digests(self, campaign_id: str) -> ShareDigests:
        return await self._run(lambda db: postgres_shares.digests(db, campaign_id))

    async def publish_model(self, campaign_id: str, document: str) -> PublishedModel:
        async def work(db: Connection) -> PublishedModel:
            number, now = (await sql.row(db, campaign_id))["number"], self._clock()
            await sql.lock(db, number, shared=False)
            version = await db.fetchval(
                "INSERT INTO models (campaign, version, document, created) "
                "SELECT $1, coalesce(max(version), 0) + 1, $2, $3 FROM models WHERE campaign = $1 RETURNING version",
                number,
                document,
                now,
            )
            return PublishedModel(version, document, now)

        return await self._run(work)

    async def model(self, campaign_id: str, version: int | None = None) -> PublishedModel | None:
        async def work(db: Connection) -> PublishedModel | None:
            row = await db.fetchrow(
                "SELECT version, document, created FROM models WHERE campaign = $1 "
                "AND version = coalesce($2, version) ORDER BY version DESC LIMIT 1",
                (await sql.row(db, campaign_id))["number"],
                version,
            )
            return row and PublishedModel(**row)

        return await self._run(work)

    async def add_token(self, token: StoredToken) -> None:
        await self._run(lambda db: postgres_shares.add_token(db, token))

    async def rotate_token(self, name: str, token: StoredToken) -> bool:
        return await self._run(lambda db: postgres_shares.rotate(db, name, token, self._clock()))

    async def tokens(self) -> list[StoredToken]:
        async def work(db: Connection) -> list[StoredToken]:
            rows = await db.fetch("SELECT name, scope, digest, created, revoked FROM tokens ORDER BY created, name")
            return [StoredToken(**row) for row in rows]

        return await self._run(work)

    async def revoke_token(self, name: str) -> bool:
        return await self._run(lambda db: postgres_shares.revoke(db, name, self._clock()))

    async def check(self) -> None:
        await self._run(schema.check, attempts=1)

    async def audit(self) -> list[Finding]:
        async def work(db: Connection) -> list[Finding]:
            findings: list[Finding] = []
            rows = await db.fetch("SELECT number, id, document, closed, salt FROM campaigns ORDER BY number")
            for row in rows:
                ids = None
                if row["closed"] is None:
                    ids = await db.fetchval(f"SELECT count(*) FROM {schema.ids_table(row['number'])}")
                findings += audit_campaign(row["id"], row["document"], await sql.parts(db, row["number"]), ids)
                shares = await postgres_shares.stored(db, row["number"])
                findings += audit_shares(row["id"], row["document"], row["salt"], shares)
            return findings

        return await self._run(work, isolation="repeatable_read")

    async def close(self) -> None:
        await self._pool.close()

    async def _count_batch(
        self, db: Connection, campaign_id: str, batch: Batch
    ) -> tuple[int | None, Sequence[Outcome]]:
        """The campaign's number where a part was appended, and the answers."""
        refused = [Outcome(refused=UNKNOWN)] * len(batch.submissions)
        found = await db.fetchrow("SELECT number, max_reports FROM campaigns WHERE id = $1", campaign_id)
        if found is None:
            return None, refused
        number, most = found
        await sql.lock(db, number, shared=most is None)
        # Read after the lock: a campaign that was being closed is closed now.
        row = await db.fetchrow("SELECT opens, closes, closed, salt FROM campaigns WHERE number = $1", number)
        life = Life(row["opens"], row["closes"], row["closed"])
        refusal = life.refusal(self._clock()) if row["salt"] is None else TAKES_SHARES
        if refusal:
            return None, [Outcome(refused=refusal)] * len(batch.submissions)
        settlement = await sql.insert(db, number, batch, None if most is None else most - await sql.reports(db, number))
        if not settlement.counted:
            return None, settlement.outcomes
        await db.execute(
            "INSERT INTO parts (campaign, reports, sums) VALUES ($1, $2, $3)",
            number,
            settlement.counted,
            encode_part(settlement.sums),
        )
        return number, settlement.outcomes

    async def _compact(self, number: int) -> None:
        """Replace the parts that nobody else is replacing by their sum."""

        async def work(db: Connection) -> None:
            document = await db.fetchval("SELECT document FROM campaigns WHERE number = $1", number)
            rows = await db.fetch("DELETE FROM parts WHERE campaign = $1 RETURNING sums", number)
            tally = tally_of_parts(Campaign.parse(document), [row["sums"] for row in rows])
            await db.execute(
                "INSERT INTO parts (campaign, reports, sums) VALUES ($1, $2, $3)",
                number,
                int(tally.n.sum()),
                part_of_tally(tally),
            )

        try:
            await self._run(work)
        except StoreError as error:  # The reports are counted; compaction only saves readers some work.
            LOG.warning("a tally was not compacted", extra={"reason": str(error)})

    async def _run(
        self,
        work: Callable[[Connection], Awaitable[Result]],
        *,
        isolation: str = "read_committed",
        attempts: int = ATTEMPTS,
    ) -> Result:
        """One transaction, tried again where that may help."""
        give_up = time.monotonic() + GIVE_UP_SECONDS
        for attempt in range(attempts):
            try:
                async with self._transaction(isolation) as db:
                    return await work(db)
            except _PASSING as error:  # noqa: PERF203 - trying again is the point
                if attempt + 1 == attempts or time.monotonic() > give_up:
                    raise StoreError(f"the database answered: {type(error).__name__}") from error
                await asyncio.sleep(random.uniform(0, FIRST_DELAY_SECONDS * 2**attempt))  # noqa: S311 - only a delay
            except asyncpg.PostgresError as error:
                raise StoreError(f"the database answered: {error}") from error
        raise AssertionError("the last attempt returns or raises")

    @asynccontextmanager
    async def _transaction(self, isolation: str) -> AsyncIterator[Connection]:
        async with self._pool.acquire(timeout=CONNECT_SECONDS) as db, db.transaction(isolation=isolation):
            yield db
