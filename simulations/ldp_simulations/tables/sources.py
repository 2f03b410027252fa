"""The source of an experiment's people and its campaign: a table, and a draft or one derived from the table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ldp_aggregator.service.drafts import compile_draft
from ldp_aggregator.trainers.schemas import TableError
from ldp_aggregator.trainers.table_drafts import DEFAULT_BINS, draft_from_table
from ldp_protocols import Campaign
from ldp_simulations.tables.frames import Table, check_declared, clipped_share, read_text_table, typed


@dataclass(frozen=True)
class Source:
    """People, the draft that asks them, and what whoever reads the result must know (one line each)."""

    name: str
    people: Table
    draft: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    def with_epsilon(self, epsilon: float) -> Source:
        """The same people, asked with another total loss."""
        return replace(self, draft=with_epsilon(self.draft, epsilon))


def with_epsilon(draft: Mapping[str, Any], epsilon: float) -> dict[str, Any]:
    """The same draft with another total loss."""
    return {**draft, "privacy": {**draft["privacy"], "epsilon": epsilon}}


def read_draft(path: Path) -> dict[str, Any]:
    """A draft from a ``.json`` or ``.toml`` file, checked. Raises TableError or DraftError."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise TableError(f"{path}: cannot be read ({error.strerror})") from None
    return draft_of(compile_draft(text, toml=path.suffix.lower() == ".toml"))


def draft_of(campaign: Campaign) -> dict[str, Any]:
    """The authored part of a campaign's document."""
    document: dict[str, Any] = json.loads(campaign.document)
    del document["questions"]
    return document


def source_with_schema(data: str, schema: Path) -> Source:
    """The people of a table, asked what a draft says. Raises TableError or DraftError."""
    draft = read_draft(schema)
    campaign = Campaign.compile(draft)
    people = typed(read_text_table(data), campaign.features, campaign.label, data)
    check_declared(people, campaign.features, campaign.label, data)
    notes = [
        f"{name}: {share:.1%} of the numbers lie beyond the declared bounds; devices clip them"
        for name, share in clipped_share(people.frame, campaign.features).items()
    ]
    return Source(data, people, draft, tuple(notes))


def source_without_schema(data: str, label: str, *, epsilon: float, bins: int = DEFAULT_BINS) -> Source:
    """The people of a table, asked what a draft derived from the table says."""
    table = read_text_table(data)
    derived = draft_from_table(table, label, source=data, epsilon=epsilon, bins=bins)
    campaign = Campaign.compile(derived.draft)
    return Source(data, typed(table, campaign.features, campaign.label, data), derived.draft, derived.notes)
