"""The one table of the aggregator's analysis, by the names that documents use."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from ldp_aggregator.mechanisms.analysis import Analysis
from ldp_aggregator.mechanisms.de import DirectFacts
from ldp_aggregator.mechanisms.laplace import LaplaceFacts
from ldp_aggregator.mechanisms.onebit import OneBitFacts
from ldp_aggregator.mechanisms.she import SummingHistogramFacts
from ldp_aggregator.mechanisms.ss import SubsetFacts
from ldp_aggregator.mechanisms.unary import OptimalUnaryFacts, SymmetricUnaryFacts, ThresholdedFacts
from protocols.mechanisms import AnyMechanism

FACTS: Final[dict[str, type[Analysis[Any]]]] = {
    analysis.name: analysis
    for analysis in (
        DirectFacts,
        SubsetFacts,
        OptimalUnaryFacts,
        SymmetricUnaryFacts,
        ThresholdedFacts,
        SummingHistogramFacts,
        OneBitFacts,
        LaplaceFacts,
    )
}


@lru_cache(maxsize=4096)
def analysis_of(mechanism: AnyMechanism) -> Analysis[Any]:
    """Everything else there is to know about a mechanism. Raises KeyError for one that is not in the table."""
    return FACTS[mechanism.name](mechanism)
