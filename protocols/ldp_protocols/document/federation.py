"""Federation: what the nodes of a campaign agree to in its document, beside its questions, and so by its id."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from ldp_protocols.fields import Fields, Refusal

MOST_GROUPS: Final = 1000
MOST_REPLACEMENTS: Final = 1000


@dataclass(frozen=True)
class Federation:
    """The model is the median over ``groups`` of nodes, 1 merges all, None leaves it to their number; a node may send
    so many ``replacements`` of its share, None any number.
    """

    groups: int | None = None
    replacements: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


def read_federation(value: Any, refuse: Refusal) -> Federation | None:
    """Read a draft's or document's federation, None where it has none."""
    if value is None:
        return None
    fields = Fields(value, "federation", refuse)
    groups = fields.integer("groups", least=1, most=MOST_GROUPS) if fields.has("groups") else None
    most = fields.integer("replacements", least=0, most=MOST_REPLACEMENTS) if fields.has("replacements") else None
    fields.finish()
    return Federation(groups, most)
