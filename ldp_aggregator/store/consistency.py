"""Does what is stored agree with itself? The rules behind ``ldp-aggregator fsck``, for every kind of store."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ldp_aggregator.counting.parts import tally_of_parts
from ldp_aggregator.counting.shares import decode_share
from protocols import Campaign, ProtocolError
from protocols.mechanisms import DirectEncoding, SubsetSelection, UnaryEncoding


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong; ``campaign`` is None for the store as a whole."""

    campaign: str | None
    problem: str

    def __str__(self) -> str:
        return f"{self.campaign}: {self.problem}" if self.campaign else self.problem


def audit_campaign(campaign_id: str, document: bytes, parts: Sequence[bytes], ids: int | None) -> list[Finding]:
    """Check one campaign. ``ids`` is the number of ids stored, None for a closed campaign (it has none)."""
    try:
        campaign = Campaign.parse(document, campaign_id)
        tally = tally_of_parts(campaign, parts)
    except (ProtocolError, ValueError) as error:
        return [Finding(campaign_id, str(error))]
    problems = []
    reports = int(tally.n.sum())
    if ids is not None and ids != reports:
        problems.append(f"{reports} reports are counted, but {ids} ids are stored")
    for question, n, counts in zip(campaign.questions, tally.n, tally.counts, strict=True):
        mechanism, total = question.mechanism, int(counts.sum())
        place = f"question {question.index} ({mechanism.name})"
        if n < 0:
            problems.append(f"{place}: {n} reports")
        if isinstance(mechanism, DirectEncoding) and total != n:
            problems.append(f"{place}: {n} reports, but the counts add up to {total}")
        if isinstance(mechanism, SubsetSelection) and total != n * mechanism.subset_size:
            problems.append(f"{place}: {n} reports of {mechanism.subset_size} members, but {total} are counted")
        if isinstance(mechanism, (SubsetSelection, UnaryEncoding)) and not all((counts >= 0) & (counts <= n)):
            problems.append(f"{place}: a cell is counted more often than there are reports, or less than never")
    return [Finding(campaign_id, problem) for problem in problems]


def audit_shares(
    campaign_id: str, document: bytes, salt: bytes | None, rows: Iterable[tuple[str, bytes, bytes, bool]]
) -> list[Finding]:
    """Check the shares of one campaign: node, bytes and digest of each, and whether it is among those that were ever
    sent. ``salt`` is None where it takes reports.
    """
    rows = list(rows)
    if not rows:
        return []
    if salt is None:
        return [Finding(campaign_id, f"{len(rows)} shares are stored, but the campaign takes reports")]
    try:
        campaign = Campaign.parse(document, campaign_id)
    except ProtocolError:
        return []  # Told already, of the campaign itself.
    findings = []
    for node, share, digest, counted in rows:
        try:
            decode_share(share, campaign)
        except ProtocolError as error:
            findings.append(Finding(campaign_id, f"the share of {node!r}: {error}"))
        if hashlib.sha256(share).digest() != digest:
            findings.append(Finding(campaign_id, f"the share of {node!r}: its bytes are not those of its digest"))
        if not counted:
            findings.append(Finding(campaign_id, f"the share of {node!r}: it is not among the shares that were sent"))
    return findings
