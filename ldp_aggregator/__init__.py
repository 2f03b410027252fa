"""The aggregator: adds reports up, estimates without bias, builds the Naive Bayes model that goes back to devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ldp_aggregator.counting.tally import Tally
    from ldp_aggregator.estimation.estimates import Estimates, estimate
    from ldp_aggregator.learning.guarantee import Guarantee
    from ldp_aggregator.learning.naive_bayes import NaiveBayes
    from ldp_aggregator.learning.training import train

__all__ = ["Estimates", "Guarantee", "NaiveBayes", "Tally", "estimate", "train"]

_HOMES: Final = {
    "Estimates": "estimation.estimates",
    "Guarantee": "learning.guarantee",
    "NaiveBayes": "learning.naive_bayes",
    "Tally": "counting.tally",
    "estimate": "estimation.estimates",
    "train": "learning.training",
}
"""Imported on first use, so that the command can say what to install where the aggregator's libraries are missing."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
