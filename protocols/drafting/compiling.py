"""A draft, checked and written as the document that devices will read: the draft and its resolved questions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from protocols.document.authored import MOMENTS, SCORE, VERSION, Privacy, asked_features, read_authored
from protocols.document.questions import Question
from protocols.document.schema import ContinuousFeature, Feature, Label
from protocols.drafting.choice import AUTO
from protocols.drafting.edges import with_edges
from protocols.drafting.questions import compile_questions, evaluation_questions
from protocols.errors import DraftError
from protocols.fields import Fields, parse_json

_ROUNDS: Final = {MOMENTS: "a round of moments", SCORE: "an evaluation round"}


def compile_document(draft: Mapping[str, Any] | str | bytes) -> bytes:
    """The document of a draft (a mapping, or JSON text). The same draft gives the same bytes.

    Raises DraftError, which names the field and says what would be right.
    """
    if isinstance(draft, (str, bytes)):
        draft = parse_json(draft, DraftError)
    fields = Fields(draft, "", DraftError)
    authored = read_authored(fields, DraftError)
    fields.finish()
    _check_round(*(authored[name] for name in ("asks", "label", "features", "privacy")))
    if authored["evaluation"] is not None:
        authored["evaluation"] = with_edges(authored["evaluation"])
        questions = evaluation_questions(authored["evaluation"], authored["privacy"])
    else:
        questions = compile_questions(
            authored["label"],
            asked_features(authored["features"], authored["projection"]),
            authored["privacy"],
            moments=authored["asks"] == MOMENTS,
        )
    return _write(authored, questions)


def _write(authored: Mapping[str, Any], questions: tuple[Question, ...]) -> bytes:
    """The one serialisation that compile produces: fixed key order, no white space, UTF-8."""
    document = {
        "version": VERSION,
        "title": authored["title"],
        "purpose": authored["purpose"],
        "label": authored["label"].to_json(),
        "features": [feature.to_json() for feature in authored["features"]],
        "privacy": authored["privacy"].to_json(),
        "projection": authored["projection"].to_json() if authored["projection"] else None,
        "asks": authored["asks"],
        **({"evaluation": authored["evaluation"].to_json()} if authored["evaluation"] else {}),
        "study": authored["study"],
        "opens": _instant(authored["opens"]),
        "closes": _instant(authored["closes"]),
        "questions": [question.to_json() for question in questions],
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _instant(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")


def _check_round(asks: str, label: Label, features: Sequence[Feature], privacy: Privacy) -> None:
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
