"""Does what is stored agree with itself? The rules behind ``ldp-aggregator fsck``, for every kind of store."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ldp_aggregator.counting.parts import tally_of_parts
from ldp_aggregator.counting.shares import decode_share
from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.mechanisms import facts_of
from ldp_aggregator.store.contract import StoreError
from protocols import Campaign, ProtocolError


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong; ``campaign`` is None for the store as a whole."""

    campaign: str | None
    problem: str

    def __str__(self) -> str:
        return f"{self.campaign}: {self.problem}" if self.campaign else self.problem


def unreadable(campaign_id: str, error: Exception) -> Finding:
    return Finding(campaign_id, f"what is stored of it cannot be read: {error}")


@dataclass(frozen=True, slots=True)
class StoredCampaign:
    """Everything that is stored of one campaign, as it stands there."""

    id: str
    document: bytes
    salt: bytes | None
    parts: Sequence[bytes]
    ids: int | None
    """How many ids are stored; None for a sealed campaign, which has none."""
    overlap: int
    """Reports that are in the sums twice, and have one id."""
    lost_ids: int
    """Reports whose ids were lost with a damaged run."""
    shares: Sequence[tuple[str, bytes, bytes, bool]]
    """Node, share and digest, and whether the share is among those that were ever sent."""


def tally_or_refuse(campaign_id: str, document: bytes, parts: Iterable[bytes]) -> Tally:
    """The sum of a campaign's parts. Raises StoreError where they are none."""
    try:
        campaign = Campaign.parse(document, campaign_id)
    except ProtocolError as error:
        raise damaged(campaign_id, error) from error
    return sum_or_refuse(campaign, parts)


def sum_or_refuse(campaign: Campaign, parts: Iterable[bytes]) -> Tally:
    """The sum of parts. Raises StoreError where they are none of this campaign."""
    try:
        return tally_of_parts(campaign, parts)
    except ValueError as error:
        raise damaged(campaign.id, error) from error


def damaged(campaign_id: str, error: Exception) -> StoreError:
    return StoreError(f"campaign {campaign_id} is damaged: {error}; 'ldp-aggregator fsck' tells what else is")


def check_campaign(stored: StoredCampaign) -> list[Finding]:
    """Check one campaign."""
    try:
        campaign = Campaign.parse(stored.document, stored.id)
    except (ProtocolError, ValueError) as error:
        problems = [str(error)]
    else:
        problems = [*_problems_of_tally(campaign, stored), *_problems_of_shares(campaign, stored)]
    if stored.salt is None and stored.shares:
        problems.append(f"{len(stored.shares)} shares are stored, but the campaign takes reports")
    return [Finding(stored.id, problem) for problem in problems]


def _problems_of_tally(campaign: Campaign, stored: StoredCampaign) -> Iterator[str]:
    try:
        tally = tally_of_parts(campaign, stored.parts)
    except ValueError as error:
        yield str(error)
        return
    reports = int(tally.n.sum())
    if stored.ids is not None and stored.ids + stored.overlap + stored.lost_ids != reports:
        twice = f" ({stored.overlap} of them for two reports)" if stored.overlap else ""
        lost = f" and {stored.lost_ids} were lost with a damaged run" if stored.lost_ids else ""
        yield f"{reports} reports are counted, but {stored.ids} ids are stored{twice}{lost}"
    for question, n, counts in zip(campaign.questions, tally.n, tally.counts, strict=True):
        place = f"question {question.index} ({question.mechanism.name})"
        if n < 0:
            yield f"{place}: {n} reports"
        for problem in facts_of(question.mechanism).impossible(int(n), counts):
            yield f"{place}: {problem}"


def _problems_of_shares(campaign: Campaign, stored: StoredCampaign) -> Iterator[str]:
    if stored.salt is None:
        return
    for node, share, digest, counted in stored.shares:
        try:
            decode_share(share, campaign)
        except ProtocolError as error:
            yield f"the share of {node!r}: {error}"
        if hashlib.sha256(share).digest() != digest:
            yield f"the share of {node!r}: its bytes are not those of its digest"
        if not counted:
            yield f"the share of {node!r}: it is not among the shares that were sent"
