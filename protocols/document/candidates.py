"""The candidate models of an evaluation round, which its document carries by value.

What a device votes on is in the bytes that it verified: nothing is fetched, and nobody can show two devices two models
under one name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from protocols.document.schema import Feature, Label
from protocols.errors import ModelError
from protocols.fields import Fields, Refusal

if TYPE_CHECKING:
    from protocols.model import Model

MOST_CANDIDATES: Final = 8


@dataclass(frozen=True)
class Candidate:
    """A model and the name that its accuracy is told under; ``document`` is the model as it stands in the campaign."""

    name: str
    model: Model
    document: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "model": dict(self.document)}


def read_candidates(
    fields: Fields, label: Label, features: Sequence[Feature], refuse: Refusal
) -> tuple[Candidate, ...]:
    """The candidates of a round that asks for scores: of its label, about nothing but its features."""
    from protocols.model import Model  # here: models are made of what the modules here read, and few rounds have any

    declared = {feature.name: _described(feature) for feature in features}
    found: list[Candidate] = []
    for position, value in enumerate(fields.sequence("candidates", least=2, most=MOST_CANDIDATES)):
        place = f"candidates[{position}]"
        members = Fields(value, place, refuse)
        name, document = members.text("name"), members.raw("model")
        members.finish()
        if document is None:
            raise members.error("model", "is missing; it looks like a model that train prints")
        try:
            model = Model.from_json(json.dumps(document))
        except ModelError as error:
            raise members.error("model", str(error)) from None
        if (model.label, model.classes) != (label.name, label.classes):
            raise members.error("model", "must be of the campaign's label and classes, in their order")
        projection = model.projection
        outputs = projection.output_positions if projection else {}
        used = [one.feature for one in model.likelihoods if one.feature.name not in outputs]
        for feature in (*used, *(projection.inputs if projection else ())):
            if declared.get(feature.name) != _described(feature):
                raise members.error("model", f"feature {feature.name} is not declared so in the campaign")
        if name in [one.name for one in found]:
            raise members.error("name", f"{name} stands in the list twice; every entry must be different")
        found.append(Candidate(name, model, document))
    return tuple(found)


def _described(feature: Feature) -> dict[str, Any]:
    """Without what a model does not say: how often the feature is asked about, whether it may be missing, and whether
    its values are in their order.
    """
    return {**feature.to_json(), "weight": 1, "missing": None, "ordered": None}
