"""The largest likelihood ratio of a mechanism by enumeration: every item, every output, from the definitions.

It shares no formula with the closed forms that mechanisms prove, and must agree with them.
"""

from __future__ import annotations

from typing import Final

from ldp_aggregator.mechanisms.registry import analysis_of
from protocols.document.campaign import Campaign
from protocols.document.verification import CLOSED_FORM, Verification, verify
from protocols.mechanisms import AnyMechanism, WorstCase

ENUMERATION: Final = "enumeration"

MOST_ENUMERATED: Final = 1 << 12
"""Probabilities (items times reports) up to which a mechanism is enumerated."""


def verify_thoroughly(campaign: Campaign) -> Verification:
    """Check every question of a campaign, by enumeration where that is possible."""
    return verify(campaign, worst_case)


def worst_case(mechanism: AnyMechanism) -> tuple[WorstCase, str]:
    """The largest likelihood ratio, and how it was found: enumerated where there are few outputs, else proved."""
    analysis = analysis_of(mechanism)
    if 0 < analysis.law_size <= MOST_ENUMERATED:
        return WorstCase(max(max(law) / min(law) for law in analysis.laws())), ENUMERATION
    return mechanism.worst_case(), CLOSED_FORM
