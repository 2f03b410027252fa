"""A draft, checked and written as the document that devices will read: the draft and its resolved questions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from protocols.document.campaign import MOMENTS, VERSION, Campaign, asked_features, read_authored
from protocols.document.questions import Question
from protocols.drafting.edges import with_edges
from protocols.drafting.questions import compile_questions, evaluation_questions
from protocols.drafting.rounds import check_round
from protocols.errors import DocumentError, DraftError
from protocols.fields import Fields, parse_json


def compile_document(draft: Mapping[str, Any] | str | bytes) -> bytes:
    """The document of a draft (a mapping, or JSON text). The same draft gives the same bytes.

    Raises DraftError, which names the field and says what would be right.
    """
    if isinstance(draft, (str, bytes)):
        draft = parse_json(draft, DraftError)
    fields = Fields(draft, "", DraftError)
    authored = read_authored(fields, DraftError)
    fields.finish()
    check_round(*(authored[name] for name in ("asks", "label", "features", "privacy")))
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
    document = _write(authored, questions)
    try:
        Campaign.parse(document)
    except DocumentError as error:
        raise DraftError("draft", f"compiles to a document no device accepts: {error}") from None
    return document


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
