"""Models of federated campaigns: derived from the shares there are when they are read, and kept until one changes."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, field
from typing import Final

from ldp_aggregator.server.problems import ProblemError
from ldp_aggregator.service.publishing import derive_model
from ldp_aggregator.store.contract import ShareDigests, Shares, ShareStore
from protocols import Campaign

MOST_KEPT: Final = 64


@dataclass(slots=True)
class _Kept:
    """A model, and of which shares it is. The lock lets one reader derive it while the others wait."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    of: ShareDigests | None = None
    body: bytes = b""


class FederatedModels:
    """One for a process. Nothing here has to be told of a change: every read asks the store which shares there are.

    ``groups`` above 1 takes the median over so many groups of nodes, drawn by the campaign's salt.
    """

    def __init__(self, store: ShareStore, groups: int) -> None:
        self._store = store
        self._groups = groups
        self._kept: dict[str, _Kept] = {}

    async def body(self, campaign: Campaign) -> bytes:
        """The model document of the shares there are now."""
        digests = await self._store.share_digests(campaign.id)
        kept = self._kept.get(campaign.id)
        if kept is None:
            if len(self._kept) >= MOST_KEPT:
                del self._kept[next(iter(self._kept))]
            kept = self._kept[campaign.id] = _Kept()
        if kept.of == digests:
            return kept.body
        async with kept.lock:
            if kept.of != digests:
                await self._derive(campaign, kept)
            return kept.body

    async def _derive(self, campaign: Campaign, kept: _Kept) -> None:
        shares = await self._store.shares(campaign.id)
        members = () if shares is None else shares.members
        if shares is None or len(members) < self._groups:
            wanted = f"the {self._groups} that its groups need" if self._groups > 1 else "any"
            raise ProblemError("no-model", f"{len(members)} nodes have sent their shares, before {wanted}")
        body = await asyncio.to_thread(derive_model, campaign, shares, self._groups)
        kept.of, kept.body = _digests(shares), body.encode()


def _digests(shares: Shares) -> ShareDigests:
    found = {member.node: hashlib.sha256(member.share).digest() for member in shares.members}
    return tuple((node, found.get(node), sent) for node, sent in shares.releases)
