"""What an author asks of a round of moments, or of an evaluation, that it never asks: refused, not ignored.

Of drafts alone: a document that says so was published, asks what its questions say, and stays valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from protocols.document.campaign import MOMENTS, SCORE
from protocols.document.privacy import Privacy
from protocols.document.schema import ContinuousFeature, Feature, Label
from protocols.drafting.choice import AUTO
from protocols.errors import DraftError

_ROUNDS: Final = {MOMENTS: "a round of moments", SCORE: "an evaluation round"}


def check_round(asks: str, label: Label, features: Sequence[Feature], privacy: Privacy) -> None:
    """Raises DraftError, which names the field and says what would be right; of a round that asks for a model never."""
    if asks not in _ROUNDS:
        return
    this = _ROUNDS[asks]
    if asks == SCORE:
        _check_score(privacy, this)
    else:
        _check_moments(label, features, privacy, this)


def _check_score(privacy: Privacy, this: str) -> None:
    if privacy.continuous != AUTO:
        raise DraftError(
            "privacy.continuous",
            f"is {privacy.continuous}, and {this} asks about no feature. Leave it out, or say auto",
        )


def _check_moments(label: Label, features: Sequence[Feature], privacy: Privacy, this: str) -> None:
    for position, feature in enumerate(features):
        if isinstance(feature, ContinuousFeature) and feature.bins is not None:
            raise DraftError(
                f"features[{position}].bins",
                f"is {feature.bins}, and {this} asks for the number itself. Leave it out here; the round that follows "
                "may have bins",
            )
    if label.weight != 0:
        return
    for name, value in (("discrete", None if privacy.discrete == AUTO else privacy.discrete), ("theta", privacy.theta)):
        if value is not None:
            raise DraftError(
                f"privacy.{name}",
                f"is {value}, and says how {this} asks for the label alone, which it does not. Leave it out, or ask "
                "for the label (label.weight 1, or leave it out)",
            )
