"""The subject of an evaluation round: one model, which its document carries by value, and the bins of its score.

What a device tells of a model is told of the bytes that it verified: nothing is fetched, and nobody can show two
devices two models under one name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from protocols.document.schema import MOST_CELLS, MOST_WEIGHT, Feature, Label
from protocols.errors import ModelError
from protocols.fields import Fields, Refusal, integral

if TYPE_CHECKING:
    from protocols.model import Model

MOST_BINS: Final = 8
_LIKE: Final = '{"model": {...}, "edges": [-1, 0, 1]}; the model is one that train prints'


@dataclass(frozen=True)
class Evaluation:
    """``document`` is the model as it stands in the campaign.

    ``edges`` of the score's bins, where there are two classes: the score of a record is the log odds of the second
    class, ln P(second | record) - ln P(first | record), and above 0 the model says the second. None where there are
    more classes, and in a draft that leaves them to be chosen. ``weights`` say how often the question whether the model
    is right is asked, and how often the one where its score lies.
    """

    model: Model
    document: Mapping[str, Any]
    edges: tuple[float, ...] | None
    weights: tuple[int, int]

    @property
    def places(self) -> int:
        """Bins of the score, or the classes that the model can say."""
        return len(self.model.classes) if self.edges is None else len(self.edges) + 1

    def place_of(self, scores: Sequence[float]) -> int:
        """Return the place of a record whose joint log likelihoods are ``scores``, one a class: with edges, the number
        of those that its log odds are above; else the class of the largest, the first of equals.
        """
        if self.edges is None:
            return scores.index(max(scores))
        odds = scores[1] - scores[0]
        return sum([odds > edge for edge in self.edges])

    def to_json(self) -> dict[str, Any]:
        edges = None if self.edges is None else list(self.edges)
        return {"model": dict(self.document), "edges": edges, "weights": list(self.weights)}


def read_evaluation(value: Any, label: Label, features: Sequence[Feature], refuse: Refusal) -> Evaluation:
    """Read the model and the bins of a round that asks about a model: of its label, about nothing but its features."""
    from protocols.model import Model  # here: models are made of what the modules here read, and few rounds have any

    fields = Fields(value, "evaluation", refuse, like=_LIKE)
    document = fields.raw("model")
    if document is None:
        raise fields.error("model", "is missing; it looks like a model that train prints")
    try:
        model = Model.from_json(json.dumps(document))
    except ModelError as error:
        raise fields.error("model", str(error)) from None
    if (model.label, model.classes) != (label.name, label.classes):
        raise fields.error("model", "must be of the campaign's label and classes, in their order")
    declared = {feature.name: _described(feature) for feature in features}
    projection = model.projection
    outputs = projection.output_positions if projection else {}
    used = [one.feature for one in model.likelihoods if one.feature.name not in outputs]
    for feature in (*used, *(projection.inputs if projection else ())):
        if declared.get(feature.name) != _described(feature):
            raise fields.error("model", f"feature {feature.name} is not declared so in the campaign")
    edges = _read_edges(fields, len(label.classes))
    weights = _read_weights(fields)
    fields.finish()
    return Evaluation(model, document, edges, weights)


def _read_edges(fields: Fields, classes: int) -> tuple[float, ...] | None:
    if classes > 2:
        if fields.has("edges"):
            raise fields.error("edges", "are of the log odds of two classes; leave them out where there are more")
        if classes**2 > MOST_CELLS:
            raise fields.error("model", f"has {classes} classes; at most {math.isqrt(MOST_CELLS)} can be evaluated")
        return None
    if not fields.has("edges"):
        return None
    values = fields.sequence("edges", least=1, most=MOST_BINS - 1)
    edges = fields.row("edges", values, len(values))
    if list(edges) != sorted(set(edges)) or 0 not in edges:
        raise fields.error("edges", "must rise, and one of them be 0, where the model says the one class or the other")
    return edges


def _read_weights(fields: Fields) -> tuple[int, int]:
    if not fields.has("weights"):
        return 1, 1
    right, score = map(integral, fields.sequence("weights", least=2, most=2))
    if right is None or score is None or not 0 <= min(right, score) <= max(right, score) <= MOST_WEIGHT:
        raise fields.error("weights", f"must be two whole numbers from 0 to {MOST_WEIGHT}")
    if right == score == 0:
        raise fields.error("weights", "are both 0; one of the two questions has to be asked")
    return right, score


def _described(feature: Feature) -> dict[str, Any]:
    """Describe a feature without what a model does not say: how often it is asked about, whether it may be missing, and
    whether its values are in their order.
    """
    return {**feature.to_json(), "weight": 1, "missing": None, "ordered": None}
