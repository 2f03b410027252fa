"""Everything that is wrong with a record, told to the developer on the device and to nobody else.

Pure, and independent of any draw: every feature is looked at, whichever question a device would answer. It is for an
app's tests and debug builds; what it returns shows values of the record, and must not be sent anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ldp_protocols import Campaign
from ldp_protocols.features import Feature
from ldp_protocols.fields import describe, shorten

_NOT_GIVEN: Final = object()

_MOST_NAMED: Final = 12
"""Declared texts and names that a message lists."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong. ``feature`` is its name in the record, empty where it is the record as a whole."""

    feature: str
    wrong: str
    right: str

    def __str__(self) -> str:
        return f"{self.feature or 'the record'}: {self.wrong}; {self.right}"


def record_problems(
    campaign: Campaign, record: Mapping[str, object], label: object = _NOT_GIVEN
) -> tuple[Problem, ...]:
    """Tell whatever in ``record`` would not be answered as it was meant, of all features at once.

    First what the campaign's features do not find or cannot use, in their order: absent, undeclared, no number. Then
    names that the campaign does not know, and ``label``, where it is given and not declared. What a feature declares is
    no problem: nothing where it may be missing, a number beyond its bounds, which is clipped. Raises nothing, whatever
    the record holds.
    """
    if not isinstance(record, Mapping):
        return (Problem("", f"{_kind(record)} is no mapping", "give names of features with their values"),)
    problems = [_of_feature(feature, record) for feature in campaign.features]
    try:
        names = {feature.name for feature in campaign.features}
        problems += [_unknown(campaign, name) for name in record if name not in names]
    except Exception as error:
        problems.append(Problem("", f"reading its names raises {type(error).__name__}", "give a dictionary"))
    if label is not _NOT_GIVEN and campaign.label.index_of(label) is None:
        wrong, right = f"{_shown(label)} is not declared", f"must be one of {_listed(campaign.label.classes)}"
        if not campaign.label:
            wrong, right = f"{_shown(label)} is a label", "leave it out: the campaign has none"
        problems.append(Problem(campaign.label.name, wrong, right))
    return tuple(problem for problem in problems if problem is not None)


def _of_feature(feature: Feature, record: Mapping[str, object]) -> Problem | None:
    """Tell what is wrong with the record's value of a declared feature, if anything is."""
    right = f"must be {feature.wanted(_MOST_NAMED)}"
    may_be_missing = feature.missing or feature.index_of(None) is not None
    try:
        if feature.name not in record:
            return None if may_be_missing else Problem(feature.name, "the record does not hold it", right)
        value = record[feature.name]
    except Exception as error:
        return Problem(feature.name, f"reading it raises {type(error).__name__}", right)
    if _is_nothing(value):
        return None if may_be_missing else Problem(feature.name, f"{_shown(value)} is no value", right)
    wrong = feature.wrong_with(value)
    return None if wrong is None else Problem(feature.name, f"{_shown(value)} {wrong}", right)


def _unknown(campaign: Campaign, name: object) -> Problem:
    """A name in the record that is none of the campaign's features."""
    features = [feature.name for feature in campaign.features]
    text = shorten(name) if isinstance(name, str) else _shown(name)
    if campaign.label and name == campaign.label.name:
        return Problem(text, "is the label", "give the label apart from the record")
    if campaign.projection is not None and name in campaign.projection.output_positions:
        return Problem(text, "is computed from other features", "leave it out")
    from difflib import get_close_matches  # a module that only a wrong record needs

    folded = {feature.casefold(): feature for feature in features}
    near = get_close_matches(text.casefold(), folded, 1)
    right = f"did you mean {folded[near[0]]!r}?" if near else f"the features are {_listed(features)}"
    return Problem(text, "is no feature of the campaign", right)


def _is_nothing(value: Any) -> bool:
    """None, not-a-number, pandas' NA: what stands for no value."""
    try:
        return value is None or type(value).__name__ == "NAType" or bool(value != value)
    except Exception:
        return False


def _shown(value: object) -> str:
    """A value for a message, whatever its own methods do."""
    try:
        return describe(value)
    except Exception:
        return _kind(value)


def _kind(value: object) -> str:
    return f"this {type(value).__name__}"


def _listed(texts: Sequence[str]) -> str:
    more = ", ..." if len(texts) > _MOST_NAMED else ""
    return ", ".join(map(shorten, texts[:_MOST_NAMED])) + more
