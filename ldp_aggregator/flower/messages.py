"""The messages of the one round of a campaign: the document to the nodes, a share or a refusal back.

Both are records of named values. ``query.nb_share`` carries ``{"campaign": document bytes}``; the answer is
``{"share": bytes}`` (:mod:`ldp_aggregator.node_statistics`) or ``{"refused": code, "why": text}``.

Safety: a refusal is no noisy answer, so nothing in it may depend on the rows of a table. Of what is wrong with a table
only names that stand in the document travel; the rest is :data:`NOT_READY`, and the reason stays in the node's log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ldp_protocols.errors import LdpError

QUERY: Final = "nb_share"
MESSAGE_TYPE: Final = f"query.{QUERY}"
RECORD: Final = "ldp-bayes"
"""The name of the record that holds the values."""

OTHER_CAMPAIGN: Final = "other-campaign"
UNREADABLE: Final = "unreadable-document"
ABOVE_CAP: Final = "above-cap"
OTHER_SCHEMA: Final = "other-schema"
NOT_READY: Final = "not-ready"

CODES: Final = {
    OTHER_CAMPAIGN: "the document is not the one of the campaign that this node agreed to",
    UNREADABLE: "the document is none that this version can trust",
    ABOVE_CAP: "the campaign would cost more epsilon than this node has left",
    OTHER_SCHEMA: "the node's table lacks a column that the campaign asks for",
    NOT_READY: "the node cannot answer now; its own log says why",
}
"""Why a node refuses. All but the last are for good: asking again changes nothing."""

_LONGEST_TEXT: Final = 300


def refused(code: str, why: str = "") -> LdpError:
    """A node does not answer: ``code`` and text travel to the server, what caused it stays at the node."""
    return LdpError(code, why or CODES[code])


@dataclass(frozen=True)
class Reply:
    """The answer of a node: named values, or None and the error that there is instead."""

    node: str
    values: Mapping[str, object] | None
    error: str = ""


def refusal(error: LdpError) -> dict[str, str]:
    """The values of a refusal."""
    return {"refused": error.code, "why": str(error)}


def document_in(values: Mapping[str, object]) -> bytes:
    """The document that a query carries. Raises LdpError."""
    document = values.get("campaign")
    if set(values) != {"campaign"} or type(document) is not bytes:
        raise refused(UNREADABLE, 'a query carries "campaign", the document\'s bytes, and nothing else')
    return document


def refusal_in(values: Mapping[str, object]) -> tuple[str, str] | None:
    """Code and text of a refusal, None where the values are none."""
    code, why = values.get("refused"), values.get("why")
    if set(values) != {"refused", "why"} or type(code) is not str or type(why) is not str or code not in CODES:
        return None
    return code, printable(why)


def printable(text: str) -> str:
    """Text of somebody else, safe to print: one line, no control characters, not long."""
    clean = "".join(character if character.isprintable() else " " for character in text)
    return clean if len(clean) <= _LONGEST_TEXT else clean[:_LONGEST_TEXT] + " ..."
