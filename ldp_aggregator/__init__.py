"""The aggregator: adds reports up, estimates without bias, builds the Naive Bayes model that goes back to devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ldp_aggregator.estimates import Estimates, estimate
    from ldp_aggregator.guarantee import Guarantee
    from ldp_aggregator.naive_bayes import NaiveBayes
    from ldp_aggregator.tally import Tally
    from ldp_aggregator.training import train

__all__ = ["Estimates", "Guarantee", "NaiveBayes", "Tally", "estimate", "train"]

_HOMES: Final = {
    "Estimates": "estimates",
    "Guarantee": "guarantee",
    "NaiveBayes": "naive_bayes",
    "Tally": "tally",
    "estimate": "estimates",
    "train": "training",
}
"""Imported on first use, so that the command can say what to install where the aggregator's libraries are missing."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
