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
from ldp_aggregator.store.decisions import CampaignRow
from protocols import Campaign, ProtocolError


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong; ``campaign`` is None for the store as a whole."""

    campaign: str | None
    problem: str

    def __str__(self) -> str:
        return f"{self.campaign}: {self.problem}" if self.campaign else self.problem


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
    except (ProtocolError, ValueError) as error:
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
    for question, n, counts in zip(campaign.questions, tally.n, tally.counts, strict=True):
        place = f"question {question.index} ({question.mechanism.name})"
        if n < 0:
            yield f"{place}: {n} reports"
        for problem in facts_of(question.mechanism).impossible(int(n), counts):
            yield f"{place}: {problem}"


def _problems_of_shares(campaign: Campaign, shares: Sequence[tuple[str, bytes, bytes, bool]]) -> Iterator[str]:
    for node, share, digest, counted in shares:
        try:
            decode_share(share, campaign)
        except ProtocolError as error:
            yield f"the share of {node!r}: {error}"
        if hashlib.sha256(share).digest() != digest:
            yield f"the share of {node!r}: its bytes are not those of its digest"
        if not counted:
            yield f"the share of {node!r}: it is not among the shares that were sent"
