"""Knowledge of the aggregator about mechanisms: payloads on arrays, laws, bounds, lies, simulation, in one table.

The largest likelihood ratio of a mechanism is enumerated from the definitions, item by item and output by output. That
shares no formula with the closed forms that mechanisms prove, and must agree with them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from ldp_aggregator.mechanisms import noisy_vector, onebit, pure
from ldp_aggregator.mechanisms.analysis import Analysis
from ldp_protocols.campaign import Campaign
from ldp_protocols.mechanisms import AnyMechanism, WorstCase
from ldp_protocols.verification import CLOSED_FORM, Verification, verify

FACTS: Final[dict[str, type[Analysis[Any]]]] = {
    analysis.name: analysis
    for analysis in (
        pure.DirectFacts,
        pure.SubsetFacts,
        pure.OptimalUnaryFacts,
        pure.SymmetricUnaryFacts,
        pure.ThresholdedFacts,
        noisy_vector.SummingHistogramFacts,
        onebit.OneBitFacts,
        noisy_vector.LaplaceFacts,
    )
}


@lru_cache(maxsize=4096)
def analysis_of(mechanism: AnyMechanism) -> Analysis[Any]:
    """Everything else there is to know about a mechanism. Raises KeyError for one that is not in the table."""
    return FACTS[mechanism.name](mechanism)


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
