"""The store as far as both databases are alike, and what each has to add: tokens, acts, directories, models and the
store's origin, shares of nodes; and the rules behind ``ldp-aggregator fsck``.

Putting a node's share takes a lock on the campaign that others share (closing waits for it) and locks the token's row
(a revocation happens before or after, never during).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar

from ldp_aggregator.counting.parts import tally_of_parts
from ldp_aggregator.mechanisms import analysis_of
from ldp_aggregator.node_statistics import Releases, decode_share, has_other_rows
from ldp_aggregator.store import contract
from ldp_aggregator.store.contract import (
    SALT_BYTES,
    Act,
    Counting,
    LoggedAct,
    Origin,
    PublishedModel,
    Restored,
    ShareDigests,
    Shares,
    StoredShare,
    StoredToken,
    StoreError,
)
from ldp_aggregator.store.decisions import CampaignRow, refuse_node, takes_reports
from ldp_aggregator.store.sql import campaigns
from ldp_aggregator.store.sql.tables import MOST, Row, SqlConnection, Transactions, new_generation, reading, writing
from ldp_protocols import Campaign, DocumentError


class Rights(Transactions):
    """Access tokens (as digests), the log of administrative acts, what publishers have signed, and models."""

    @writing
    async def add_token(self, db: SqlConnection, token: StoredToken) -> None:
        """Keep a token. Raises StoreError where the name is taken."""
        await _add_token(db, token)

    @reading
    async def token(self, db: SqlConnection, digest: bytes) -> StoredToken | None:
        """The token with this digest, revoked ones too; found by an index, however many there are."""
        return _token(await db.fetchrow("SELECT * FROM tokens WHERE digest = $1", digest))

    @reading
    async def tokens(self, db: SqlConnection) -> list[StoredToken]:
        """All tokens, revoked ones too, oldest first."""
        found = await db.fetch("SELECT * FROM tokens ORDER BY created, name")
        return [token for row in found if (token := _token(row)) is not None]

    @writing
    async def revoke_token(self, db: SqlConnection, name: str) -> bool:
        """Make a token useless; False where no token that was not revoked has this name."""
        return await _revoke(db, name)

    @writing
    async def rotate_token(
        self, db: SqlConnection, name: str, token: StoredToken, *, until: datetime | None = None
    ) -> bool:
        """Keep a token beside the one in use under ``name``, which expires at ``until`` (never later than it would
        have); None revokes it at once. The new token speaks for the same node, whose shares stay where they are.

        False (and no change) where no token in use has this name. Raises StoreError where the new name is taken.
        """
        # The lock on the old token's row makes another rotation or revocation of it wait, and shares of its node.
        old = await named_token(db, name, "FOR UPDATE")
        namesake = await named_token(db, token.name)
        if namesake is not None and namesake.digest == token.digest:
            return True  # An earlier try was committed, and its answer lost.
        if old is None or not old.is_in_use(await db.now()):
            return False
        if until is None:
            await _revoke(db, name)
        else:
            await db.execute("UPDATE tokens SET expires = $2 WHERE name = $1", name, min(until, old.expires or until))
        await _add_token(db, replace(token, speaks_for=old.node))
        return True

    @writing
    async def begin_act(self, db: SqlConnection, act: Act) -> int:
        """Write down, durably, what is about to be done; returns the entry's number."""
        return await begin_act(db, act, contract.ASKED, await db.now())

    @writing
    async def end_act(self, db: SqlConnection, number: int, outcome: str) -> None:
        """Write down how it ended."""
        await db.execute("UPDATE acts SET outcome = $2 WHERE number = $1", number, outcome)

    @reading
    async def acts(
        self, db: SqlConnection, *, campaign_id: str | None = None, last: int | None = None
    ) -> Sequence[LoggedAct]:
        """The entries, of one campaign or of all, the ``last`` so many or all; oldest first."""
        found = await db.fetch(
            "SELECT number, moment, outcome, actor, act, campaign, detail FROM acts "
            "WHERE CAST($1 AS text) IS NULL OR campaign = $1 ORDER BY number DESC LIMIT $2",
            campaign_id,
            MOST if last is None else last,
        )
        return [LoggedAct(number, moment, Act(*act), outcome) for number, moment, outcome, *act in found[::-1]]

    @writing
    async def put_directory(self, db: SqlConnection, key: str, version: int, document: bytes) -> None:
        """Keep a publisher's directory in place of an older one; the same again changes nothing.

        Raises StoreError where a newer one is kept, or another of this version.
        """
        # Two that are put at once wait for each other: reading and replacing are one.
        await db.fetch("SELECT 1 FROM origin FOR UPDATE")
        kept = await db.fetchrow("SELECT version, document FROM directories WHERE key = $1", key)
        if kept is not None and version <= kept["version"]:
            if (version, document) == (kept["version"], bytes(kept["document"])):
                return
            text = f"version {kept['version']} of this publisher's directory is kept; sign a later one"
            raise StoreError(text, contract.OLDER)
        await db.execute(
            "INSERT INTO directories (key, version, document) VALUES ($1, $2, $3) "
            "ON CONFLICT (key) DO UPDATE SET version = excluded.version, document = excluded.document",
            *(key, version, document),
        )

    @reading
    async def directory(self, db: SqlConnection, key: str) -> bytes | None:
        """The newest directory of a publisher."""
        kept = await db.fetchrow("SELECT document FROM directories WHERE key = $1", key)
        return None if kept is None else bytes(kept[0])

    @writing
    async def publish_model(self, db: SqlConnection, campaign_id: str, document: str) -> PublishedModel:
        """Keep a model under the next version."""
        number = (await campaigns.row(db, campaign_id, campaigns.IN_TURN)).number
        last = await db.fetchrow("SELECT max(version) FROM models WHERE campaign = $1", number)
        version = max((last and last[0]) or 0, (await origin(db)).version_floor) + 1
        now = await db.now()
        statement = "INSERT INTO models (campaign, version, document, created) VALUES ($1, $2, $3, $4)"
        await db.execute(statement, number, version, document, now)
        return PublishedModel(version, document, now)

    @reading
    async def model(self, db: SqlConnection, campaign_id: str, version: int | None = None) -> PublishedModel | None:
        """A version of the model, by default the latest; None where there is none."""
        found = await db.fetchrow(
            "SELECT version, document, created FROM models WHERE campaign = $1 AND version = coalesce($2, version) "
            "ORDER BY version DESC LIMIT 1",
            (await campaigns.row(db, campaign_id)).number,
            version,
        )
        return None if found is None else PublishedModel(**found)

    @reading
    async def origin(self, db: SqlConnection) -> Origin:
        return await origin(db)

    @reading
    async def archived_at(self, db: SqlConnection) -> str | None:
        """The address that its reports were archived at last, None where they never were."""
        found = await db.fetchrow("SELECT archive FROM origin")
        return None if found is None else found[0]

    @writing
    async def note_archive(self, db: SqlConnection, address: str) -> None:
        """Remember that they are archived there: whoever deletes a campaign has to know."""
        await db.execute("UPDATE origin SET archive = $1", address)


async def named_token(db: SqlConnection, name: str, lock: str = "") -> StoredToken | None:
    return _token(await db.fetchrow(f"SELECT * FROM tokens WHERE name = $1 {lock}", name))


async def begin_act(db: SqlConnection, act: Act, outcome: str, now: datetime) -> int:
    """An entry of the log; returns its number."""
    entry = await db.fetchrow(
        "INSERT INTO acts (moment, actor, act, campaign, detail, outcome) VALUES ($1, $2, $3, $4, $5, $6) "
        "RETURNING number",
        *(now, act.actor, act.act, act.campaign, act.detail, outcome),
    )
    return int(entry[0]) if entry is not None else 0


async def origin(db: SqlConnection) -> Origin:
    found = await db.fetchrow("SELECT generation, version_floor, is_copy FROM origin")
    return Origin(found["generation"], found["version_floor"], bool(found["is_copy"])) if found else Origin("", 0, True)


async def highest_version(db: SqlConnection) -> int:
    """The highest version that a model of any campaign was published under, or might have been."""
    found = await db.fetchrow("SELECT max(version) FROM models")
    return max((found and found[0]) or 0, (await origin(db)).version_floor)


async def renew(db: SqlConnection, now: datetime, *floors: int) -> None:
    """Make it another store: a new name, versions above all of its own and the ``floors``, and no archive: what
    another one has archived is not this one's to delete.

    What was published after a copy is not in it. Seconds since 1970 are more than any store has published that counts
    from 1, or from the seconds of an earlier restore.
    """
    floor = max(int(now.timestamp()), await highest_version(db), *floors)
    await db.execute(
        "UPDATE origin SET generation = $1, version_floor = $2, is_copy = 0, archive = NULL", new_generation(), floor
    )


async def forget_rights(db: SqlConnection, now: datetime, *, keep_shares: bool) -> Restored:
    """Revoke every token and drop every share: some may have been revoked or withdrawn since."""
    revoked = await db.execute("UPDATE tokens SET revoked = $1 WHERE revoked IS NULL", now)
    return Restored(revoked, 0 if keep_shares else await db.execute("DELETE FROM shares"))


async def _add_token(db: SqlConnection, token: StoredToken) -> None:
    """The database decides who has the name, whoever else is adding one."""
    added = await db.fetchrow(
        "INSERT INTO tokens (name, scope, digest, created, expires, campaigns, speaks_for) "
        "VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (name) DO NOTHING RETURNING name",
        *(token.name, token.scope, token.digest, token.created, token.expires),
        *(None if token.campaigns is None else " ".join(token.campaigns), token.speaks_for),
    )
    if added is None:
        # A name is never used again, so that what it did stays its own.
        raise StoreError(f"a token with the name {token.name!r} exists already; choose another name")


async def _revoke(db: SqlConnection, name: str) -> bool:
    statement = "UPDATE tokens SET revoked = $2 WHERE name = $1 AND revoked IS NULL"
    return bool(await db.execute(statement, name, await db.now()))


def _token(row: Row | None) -> StoredToken | None:
    if row is None:
        return None
    campaigns_ = None if row["campaigns"] is None else tuple(row["campaigns"].split())
    return StoredToken(**{**row, "campaigns": campaigns_})


class NodeShares(campaigns.Campaigns):
    """Shares of nodes."""

    async def put_share(self, campaign_id: str, node: str, share: bytes, *, token: str | None = None) -> str | None:
        """Keep a node's share durably, in place of the one it sent before; the same share again changes nothing.

        Returns the code that refuses it, None where it is kept. ``token`` is the name of the token that was shown,
        by default the node's first; the bytes are those of a share that was decoded.
        """
        if await self._may_decide(campaign_id):
            await self._claim(campaign_id)
        return await self._put_share(campaign_id, node, share, token or node)

    @reading
    async def _may_decide(self, db: SqlConnection, campaign_id: str) -> bool:
        """A share may be the first thing that a campaign takes, and decide what it takes."""
        return await _is_open(db, await campaigns.row(db, campaign_id))

    @writing
    async def _put_share(self, db: SqlConnection, campaign_id: str, node: str, share: bytes, token: str) -> str | None:
        # What decides a campaign's kind waits for the uploads under way, and they wait for it.
        alone = await _is_open(db, await campaigns.row(db, campaign_id))
        row = await campaigns.row(db, campaign_id, campaigns.ALONE if alone else campaigns.TOGETHER)
        counted = await campaigns.reports(db, row.number) if row.may_become_federated else 0
        now = await db.now()
        shown = await named_token(db, token, "FOR SHARE")
        takes_shares = not takes_reports(row.salt, row.max_reports, counted)
        refused = refuse_node(takes_shares, row.life, now, token_in_use=_has_say(shown, node, now))
        if refused is None:
            if row.salt is None:
                await campaigns.put(db, row, "salt", os.urandom(SALT_BYTES))
            # A repeated share keeps its time: nothing has changed.
            await db.execute(
                "INSERT INTO shares (campaign, node, share, digest, received) VALUES ($1, $2, $3, $4, $5) "
                "ON CONFLICT (campaign, node) DO UPDATE SET share = excluded.share, digest = excluded.digest, "
                "received = excluded.received WHERE shares.digest <> excluded.digest",
                *(row.number, node, share, hashlib.sha256(share).digest(), now),
            )
            await _count_release(db, row.number, node, share)
        return refused

    @writing
    async def withdraw_share(
        self, db: SqlConnection, campaign_id: str, node: str, *, token: str | None = None
    ) -> str | None:
        """Drop a node's share, durably; None also where it has none, else the code that refuses it."""
        row = await campaigns.row(db, campaign_id, campaigns.TOGETHER)
        now = await db.now()
        shown = await named_token(db, token or node, "FOR SHARE")
        refused = refuse_node(row.salt is not None, row.life, now, token_in_use=_has_say(shown, node, now))
        if refused is None:
            await db.execute("DELETE FROM shares WHERE campaign = $1 AND node = $2", row.number, node)
        return refused

    @writing
    async def withdraw_node(self, db: SqlConnection, node: str) -> int:
        """Drop a node's shares from all campaigns, closed ones too; returns how many there were."""
        return await db.execute("DELETE FROM shares WHERE node = $1", node)

    @reading
    async def shares(self, db: SqlConnection, campaign_id: str) -> Shares | None:
        """The shares of a federated campaign, None for one that takes reports."""
        row = await campaigns.row(db, campaign_id)
        if row.salt is None:
            return None
        found = await db.fetch("SELECT node, share, received FROM shares WHERE campaign = $1 ORDER BY node", row.number)
        return Shares(row.salt, tuple(StoredShare(**one) for one in found), await _releases(db, row.number))

    @reading
    async def share_digests(self, db: SqlConnection, campaign_id: str) -> ShareDigests:
        """Return what tells whether anything has changed."""
        number = (await campaigns.row(db, campaign_id)).number
        found = {node: digest for node, _, digest, _ in await stored_shares(db, number)}
        return tuple((node, found.get(node), sent) for node, sent in await _releases(db, number))


def _has_say(shown: StoredToken | None, node: str, now: datetime) -> bool:
    """Tell whether a token may still change a node's share: it may have been revoked since its request began."""
    return shown is not None and shown.is_in_use(now) and shown.node == node


async def _is_open(db: SqlConnection, row: CampaignRow) -> bool:
    """It is not decided what a campaign takes."""
    return row.may_become_federated and not await campaigns.reports(db, row.number)


async def _count_release(db: SqlConnection, number: int, node: str, share: bytes) -> None:
    """Count a share once, whatever became of it since. A node's first one has nothing to differ from.

    Of two first ones that meet, neither sees the other, and neither is believed to be of other rows.
    """
    sent = await db.fetchrow("SELECT 1 FROM releases WHERE campaign = $1 AND node = $2 LIMIT 1", number, node)
    await db.execute(
        "INSERT INTO releases (campaign, node, digest, other_rows) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
        *(number, node, hashlib.sha256(share).digest(), int(has_other_rows(share) and sent is not None)),
    )


async def _releases(db: SqlConnection, number: int) -> tuple[tuple[str, Releases], ...]:
    """Count the shares of every node that ever sent one to the campaign, sorted."""
    found = await db.fetch(
        "SELECT node, count(*) AS sent, CAST(sum(other_rows) AS bigint) AS other_rows FROM releases "
        "WHERE campaign = $1 GROUP BY node ORDER BY node",
        number,
    )
    return tuple((node, Releases(sent - other_rows - 1, other_rows)) for node, sent, other_rows in found)


async def stored_shares(db: SqlConnection, number: int) -> list[tuple[str, bytes, bytes, bool]]:
    """Node, share and digest of every row, as they stand there, and whether the share is counted."""
    rows = await db.fetch(
        "SELECT node, share, digest, EXISTS (SELECT 1 FROM releases WHERE releases.campaign = shares.campaign "
        "AND releases.node = shares.node AND releases.digest = shares.digest) AS counted "
        "FROM shares WHERE campaign = $1 ORDER BY node",
        number,
    )
    return [(node, share, digest, bool(counted)) for node, share, digest, counted in rows]


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing that is wrong; ``campaign`` is None for the store as a whole."""

    campaign: str | None
    problem: str

    def __str__(self) -> str:
        return f"{self.campaign}: {self.problem}" if self.campaign else self.problem


def check_campaign(
    row: CampaignRow,
    document: bytes,
    parts: Sequence[bytes],
    ids: int | None,
    shares: Sequence[tuple[str, bytes, bytes, bool]],
) -> Iterator[str]:
    """Check one campaign, with everything that is stored of it, as it stands there.

    ``ids`` is how many are stored, None for a sealed campaign, which has none; ``shares`` have node, share and digest,
    and whether the share is among those that were ever sent.
    """
    try:
        campaign = Campaign.parse(document, row.id)
    except ValueError as error:
        yield str(error)
    else:
        yield from _problems_of_tally(campaign, row, parts, ids)
        yield from () if row.salt is None else _problems_of_shares(campaign, shares)
    if row.salt is None and shares:
        yield f"{len(shares)} shares are stored, but the campaign takes reports"


def _problems_of_tally(campaign: Campaign, row: CampaignRow, parts: Sequence[bytes], ids: int | None) -> Iterator[str]:
    try:
        tally = tally_of_parts(campaign, parts)
    except ValueError as error:
        yield str(error)
        return
    reports = int(tally.n.sum())
    if ids is not None and ids + row.overlap + row.lost_ids != reports:
        twice = f" ({row.overlap} of them for two reports)" if row.overlap else ""
        lost = f" and {row.lost_ids} were lost with a damaged run" if row.lost_ids else ""
        yield f"{reports} reports are counted, but {ids} ids are stored{twice}{lost}"
    for question, n, counts in zip(campaign.counted, tally.n, tally.counts, strict=True):
        place = f"question {question.index} ({question.mechanism.name})"
        if n < 0:
            yield f"{place}: {n} reports"
        for problem in analysis_of(question.mechanism).impossible(int(n), counts):
            yield f"{place}: {problem}"


def _problems_of_shares(campaign: Campaign, shares: Sequence[tuple[str, bytes, bytes, bool]]) -> Iterator[str]:
    for node, share, digest, counted in shares:
        try:
            decode_share(share, campaign)
        except DocumentError as error:
            yield f"the share of {node!r}: {error}"
        if hashlib.sha256(share).digest() != digest:
            yield f"the share of {node!r}: its bytes are not those of its digest"
        if not counted:
            yield f"the share of {node!r}: it is not among the shares that were sent"


class Store(NodeShares, Rights, Counting):
    """A store, of which each database adds how it counts; :mod:`ldp_aggregator.store.contract` says what all promise.

    All methods may raise StoreError.
    """

    _UNREADABLE: ClassVar[tuple[type[Exception], ...]]
    """What the database raises where what is stored of a campaign cannot be read."""

    async def check(self) -> list[Damage]:
        """List what is wrong with what is stored: ids and counts that do not agree, documents that are not their id,
        shares that are none of their campaign.
        """
        raise NotImplementedError

    async def close(self) -> None:
        """Let go of the database."""
        raise NotImplementedError

    @property
    def damaged(self) -> int:
        """Campaigns that are counted although what is stored of them was found damaged; :meth:`check` says what is."""
        return 0

    async def _stored_ids(self, db: SqlConnection, number: int) -> int:
        raise NotImplementedError

    async def _problems_of_ids(self, db: SqlConnection, row: CampaignRow) -> list[str]:
        raise NotImplementedError

    async def _findings(self, db: SqlConnection) -> list[Damage]:
        findings: list[Damage] = []
        for row in await campaigns.rows(db):
            try:
                async with db.savepoint():
                    document, parts = await campaigns.document(db, row.id), await campaigns.parts(db, row.number)
                    ids = await self._stored_ids(db, row.number) if row.life.sealed is None else None
                    problems = [*check_campaign(row, document, parts, ids, await stored_shares(db, row.number))]
                    problems += await self._problems_of_ids(db, row)
            except self._UNREADABLE as error:
                problems = [f"what is stored of it cannot be read: {error}"]
            findings += [Damage(row.id, problem) for problem in problems]
        return findings
