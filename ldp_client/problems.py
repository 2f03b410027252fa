"""What is wrong with a record, for the developer who made it: before anything is drawn, and on this device alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from protocols import Campaign


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, and what would be right."""

    feature: str
    wrong: str
    right: str


def record_problems(campaign: Campaign, record: Mapping[str, object]) -> tuple[Problem, ...]:
    """Every unusable or undeclared value of all features, and names that the campaign does not know."""
    known = {feature.name for feature in campaign.features}
    missing = [Problem(name, "missing", "a declared value") for name in known if name not in record]
    return (*missing, *(Problem(str(name), "unknown", "a feature's name") for name in record if name not in known))
