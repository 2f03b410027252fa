"""Caches of a process: documents and campaigns, which cannot change; and the models of federated campaigns, which are
derived from the shares there are when they are read, and kept until one changes.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import re
import time
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from ldp_aggregator.server.problems import ProblemError
from ldp_aggregator.service.publishing import derive_model
from ldp_aggregator.store import Store
from ldp_aggregator.store.contract import (
    STANDINGS,
    UNKNOWN,
    ShareDigests,
    Shares,
    StoreError,
    unknown_campaign,
)
from ldp_protocols import Campaign
from ldp_protocols.campaign import document_id

DOCUMENT_BYTES: Final = 32 << 20
"""Bytes of the documents in memory."""
PARSED_BYTES: Final = 4 << 20
"""Bytes of the documents whose campaigns are in memory, parsed, which takes several times as much."""
KEPT_SECONDS: Final = 2.0
"""Seconds until a process notices at most that a campaign was closed or deleted."""
MOST_STANDINGS: Final = 1024
ID_PATTERN: Final = re.compile(r"[A-Za-z0-9_-]{43}")
"""A campaign id: 32 bytes in base64url without padding."""

Value = TypeVar("Value")


class SizedCache(Generic[Value]):
    """The values that were asked for last, by key, as long as their sizes add up to at most ``most``; one at least."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._entries: dict[str, tuple[Value, int]] = {}

    def get(self, key: str) -> Value | None:
        if key not in self._entries:
            return None
        self._entries[key] = found = self._entries.pop(key)  # At the end: the one that goes last.
        return found[0]

    def forget(self, key: str) -> None:
        self._size -= self._entries.pop(key, (None, 0))[1]

    def put(self, key: str, value: Value, size: int) -> None:
        self._size += size - self._entries.pop(key, (None, 0))[1]
        self._entries[key] = value, size
        while self._size > self._most and len(self._entries) > 1:
            self._size -= self._entries.pop(next(iter(self._entries)))[1]


class CampaignCache:
    """Documents and campaigns by id, which never change, and how each stands, as of the last :data:`KEPT_SECONDS`: what
    was deleted meanwhile, here or by another process, is forgotten.

    Who reads a document gets its bytes; only who counts or estimates has it parsed, in a thread and once for all who
    wait for it.
    """

    def __init__(self, store: Store, *, document_bytes: int = DOCUMENT_BYTES, parsed_bytes: int = PARSED_BYTES) -> None:
        self._store = store
        self._standings: SizedCache[tuple[float, asyncio.Task[bytes]]] = SizedCache(MOST_STANDINGS)
        self._documents: SizedCache[bytes] = SizedCache(document_bytes)
        self._parsed: SizedCache[Campaign] = SizedCache(parsed_bytes)
        self._parsing: dict[str, asyncio.Task[Campaign]] = {}

    async def standing(self, campaign_id: str) -> bytes:
        """The campaign's standing, as everybody is told; asked of the store once for all who come within
        :data:`KEPT_SECONDS`. Raises StoreError.
        """
        if not ID_PATTERN.fullmatch(campaign_id):
            raise unknown_campaign(campaign_id)
        now = time.monotonic()
        until, asking = self._standings.get(campaign_id) or (now, None)
        if asking is None or now >= until:
            asking = asyncio.create_task(self._ask(campaign_id))
            asking.add_done_callback(_retrieve)
            self._standings.put(campaign_id, (now + KEPT_SECONDS, asking), 1)
        return await asyncio.shield(asking)

    async def _ask(self, campaign_id: str) -> bytes:
        try:
            standing = await self._store.standing(campaign_id)
        except StoreError as error:
            if error.code == UNKNOWN:
                self._forget(campaign_id)
            else:
                self._standings.forget(campaign_id)
            raise
        if standing.word == STANDINGS[-1]:
            self._forget(campaign_id)
        return standing.encode()

    def _forget(self, campaign_id: str) -> None:
        self._documents.forget(campaign_id)
        self._parsed.forget(campaign_id)

    async def _confirm(self, campaign_id: str) -> None:
        """Forget a campaign that was deleted. If the store cannot say, the cached one is served."""
        with contextlib.suppress(StoreError):
            await self.standing(campaign_id)

    async def document(self, campaign_id: str) -> bytes:
        """The document, byte for byte. Raises StoreError, also if it is damaged."""
        if self._documents.get(campaign_id) is not None:
            await self._confirm(campaign_id)
        document = self._documents.get(campaign_id)
        if document is None:
            if not ID_PATTERN.fullmatch(campaign_id):
                raise unknown_campaign(campaign_id)
            document = await self._store.document(campaign_id)
            if document_id(document) != campaign_id:  # Caches on the way would keep it for a year.
                raise StoreError(f"the document of campaign {campaign_id} is damaged; 'ldp-aggregator fsck' tells more")
            self._documents.put(campaign_id, document, len(document))
        return document

    async def get(self, campaign_id: str) -> Campaign:
        """The campaign, parsed. Raises what :meth:`document` raises."""
        if self._parsed.get(campaign_id) is not None:
            await self._confirm(campaign_id)
        campaign = self._parsed.get(campaign_id)
        if campaign is not None:
            return campaign
        parsing = self._parsing.get(campaign_id)
        if parsing is None:
            parsing = self._parsing[campaign_id] = asyncio.create_task(self._parse(campaign_id))
            parsing.add_done_callback(functools.partial(self._end, campaign_id))
        return await asyncio.shield(parsing)  # Who hangs up leaves it to the others.

    def _end(self, campaign_id: str, parsing: asyncio.Task[Campaign]) -> None:
        del self._parsing[campaign_id]
        _retrieve(parsing)

    async def _parse(self, campaign_id: str) -> Campaign:
        document = await self.document(campaign_id)
        campaign = await asyncio.to_thread(Campaign.parse, document, campaign_id)
        self._parsed.put(campaign_id, campaign, len(document))
        return campaign

    def cached(self, campaign_id: str) -> Campaign | None:
        """A campaign that was asked for before, where it is still kept."""
        return self._parsed.get(campaign_id)


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Whoever waits has its error; where all have hung up the log need not have it."""
    if not task.cancelled():
        task.exception()


MOST_MODELS: Final = 64


@dataclass(slots=True)
class _Entry:
    """A model, and of which shares it is. The lock lets one reader derive it while the others wait."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    of: ShareDigests | None = None
    body: bytes = b""


class FederatedModels:
    """One for a process. Nothing here has to be told of a change: every read asks the store which shares there are."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._models: dict[str, _Entry] = {}

    async def body(self, campaign: Campaign) -> bytes:
        """The model document of the shares there are now."""
        digests = await self._store.share_digests(campaign.id)
        entry = self._models.get(campaign.id)
        if entry is None:
            if len(self._models) >= MOST_MODELS:
                del self._models[next(iter(self._models))]
            entry = self._models[campaign.id] = _Entry()
        if entry.of == digests:
            return entry.body
        async with entry.lock:
            if entry.of != digests:
                await self._derive(campaign, entry)
            return entry.body

    async def _derive(self, campaign: Campaign, entry: _Entry) -> None:
        shares = await self._store.shares(campaign.id)
        members = () if shares is None else shares.members
        groups = (campaign.federation and campaign.federation.groups) or 1
        if shares is None or len(members) < groups:
            wanted = f"the {groups} that its groups need" if groups > 1 else "any"
            raise ProblemError("no-model", f"{len(members)} nodes have sent their shares, before {wanted}")
        body = await asyncio.to_thread(derive_model, campaign, shares)
        entry.of, entry.body = _digests(shares), body.encode()


def _digests(shares: Shares) -> ShareDigests:
    found = {member.node: hashlib.sha256(member.share).digest() for member in shares.members}
    return tuple((node, found.get(node), sent) for node, sent in shares.releases)
