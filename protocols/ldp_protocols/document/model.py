"""The model document: what the aggregator publishes and a device classifies with.

A Naive Bayes model as plain probabilities (zeros are allowed: a model trained without noise and smoothing has them)::

    {"version": 1, "kind": "naive-bayes", "label": "missed_payment", "classes": ["yes", "no"], "prior": [0.4, 0.6],
     "features": [
       {"name": "age", "kind": "categorical", "values": ["young", "old"], "likelihood": [[0.5, 0.2], [0.5, 0.8]]},
       {"name": "income", "kind": "continuous", "low": 0, "high": 9, "bins": 2, "likelihood": [...]},
       {"name": "hours", "kind": "gaussian", "low": 0, "high": 100, "mean": [40.0, 38.5], "variance": [90.0, 81.0]}],
     "projection": {"features": [{"name": "x", "kind": "continuous", "low": 0, "high": 1}], ...} or null,
     "training": {...}}

``projection`` is the campaign's, with its input features beside it; the likelihoods are then of its outputs.
``likelihood[value][class]`` is P(value | class). Mean and variance are in the feature's own units. ``training``
says how the model came about (campaign ids, number of reports, epsilon, post-processing); a device ignores it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ldp_protocols.document import schema
from ldp_protocols.document.schema import Label, Projection, read_features, read_projection, value_of
from ldp_protocols.errors import DocumentError
from ldp_protocols.features import GAUSSIAN, KINDS, Feature, NumericFeature
from ldp_protocols.fields import Fields, describe, parse_json, read_bounds
from ldp_protocols.values import number_of

if TYPE_CHECKING:
    from typing import Self

MODEL_VERSION: Final = 1
_SUM_TOLERANCE: Final = 1e-6
_LARGEST_VARIANCE: Final = 1e300

Table = tuple[tuple[float, ...], ...]
"""``table[value][class]`` is P(value | class)."""


@dataclass(frozen=True)
class DiscreteLikelihood:
    """P(value | class) of a feature that is asked as cells."""

    feature: Feature
    table: Table

    def logarithms(self, value: object) -> list[float] | None:
        """ln P(value | class), per class; None for what is no value."""
        index = self.feature.index_of(value)
        return None if index is None else [_log(share) for share in self.table[index]]

    def to_json(self) -> dict[str, Any]:
        return {**self.feature.to_model_json(), "likelihood": [list(row) for row in self.table]}


@dataclass(frozen=True)
class GaussianLikelihood:
    """Mean and variance of a number in every class; values are clipped to [low, high] first."""

    feature: NumericFeature
    mean: tuple[float, ...]
    variance: tuple[float, ...]

    def logarithms(self, value: object) -> list[float] | None:
        """The logarithm of the density at a value, per class; None for what is no number."""
        number = number_of(value)
        if number is None:
            return None
        x = min(max(number, self.feature.low), self.feature.high)
        return [
            -0.5 * math.log(2 * math.pi * variance) - (x - mean) * (x - mean) / (2 * variance)
            for mean, variance in zip(self.mean, self.variance, strict=True)
        ]

    def to_json(self) -> dict[str, Any]:
        return {**self.feature.to_model_json(), "mean": list(self.mean), "variance": list(self.variance)}


Likelihood = DiscreteLikelihood | GaussianLikelihood


@dataclass(frozen=True)
class Model:
    """A Naive Bayes model, ready to classify with."""

    label: str
    classes: tuple[str, ...]
    prior: tuple[float, ...]
    likelihoods: tuple[Likelihood, ...]
    projection: Projection | None = None
    training: Mapping[str, Any] = field(default_factory=dict)

    def scores(self, record: Mapping[str, object]) -> list[float]:
        """:meth:`joint_log_likelihood`; where every class is impossible under the model, ln P(class)."""
        scores = self.joint_log_likelihood(record)
        return [_log(prior) for prior in self.prior] if max(scores) == -math.inf else scores

    def joint_log_likelihood(self, record: Mapping[str, object]) -> list[float]:
        """ln P(class) + the sum of ln P(value | class) over the features with a usable value, per class."""
        scores = [_log(prior) for prior in self.prior]
        for likelihood in self.likelihoods:
            # Of a projection's inputs a missing one stands at its mean.
            value = value_of(record, likelihood.feature.name, self.projection, lambda of, place: of.mean[place])
            terms = likelihood.logarithms(value)
            if terms is not None:
                scores = [score + term for score, term in zip(scores, terms, strict=True)]
        return scores

    @classmethod
    def from_json(cls, text: bytes | str) -> Self:
        """Read a model document. Raises DocumentError, which names the field."""
        fields = Fields(parse_json(text, _refuse), "", _refuse)
        fields.integer("version", least=MODEL_VERSION, most=MODEL_VERSION)
        fields.choice("kind", ("naive-bayes",))
        label = fields.text("label")
        classes = fields.texts("classes", least=2, most=schema.MOST_CLASSES)
        prior = fields.numbers("prior", len(classes))
        _check_distribution(fields, "prior", prior)
        features = fields.sequence("features", least=0, most=schema.MOST_FEATURES)
        likelihoods = tuple(
            _read_likelihood(value, f"features[{position}]", len(classes)) for position, value in enumerate(features)
        )
        names = [label, *(likelihood.feature.name for likelihood in likelihoods)]
        if len(set(names)) != len(names):
            raise fields.error("features", "the names of the label and of all features must be different")
        training = fields.raw("training") or {}
        if not isinstance(training, Mapping):
            raise fields.error("training", f"must be an object, not {describe(training)}")
        projection = _read_projection(fields, Label(label, classes))
        fields.finish()
        return cls(label, classes, prior, likelihoods, projection, training)

    def to_json(self) -> str:
        """The model document."""
        made = self.projection
        document = {
            "version": MODEL_VERSION,
            "kind": "naive-bayes",
            "label": self.label,
            "classes": list(self.classes),
            "prior": list(self.prior),
            "features": [likelihood.to_json() for likelihood in self.likelihoods],
            "projection": made and {"features": [feature.to_json() for feature in made.inputs], **made.to_json()},
            "training": dict(self.training),
        }
        return json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _refuse(name: str, problem: str) -> DocumentError:
    return DocumentError("invalid-model", f"{name}: {problem}")


def _read_projection(fields: Fields, label: Label) -> Projection | None:
    value = fields.raw("projection")
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise fields.error("projection", f"must be null or an object, not {describe(value)}")
    described = Fields({"features": value.get("features")}, "projection", _refuse)
    inputs = read_features(described.sequence("features", least=1, most=schema.MOST_FEATURES), label, _refuse)
    return read_projection({key: v for key, v in value.items() if key != "features"}, inputs, label, _refuse)


def _read_likelihood(value: Any, path: str, classes: int) -> Likelihood:
    fields = Fields(value, path, _refuse)
    name = fields.text("name")
    kind = fields.choice("kind", (*KINDS, GAUSSIAN))
    likelihood: Likelihood
    if kind == GAUSSIAN:
        number = NumericFeature(name, *read_bounds(fields))
        mean, variance = fields.numbers("mean", classes), fields.numbers("variance", classes)
        if not 0 < min(variance) <= max(variance) <= _LARGEST_VARIANCE:
            raise fields.error("variance", f"every variance must be above 0 and at most {_LARGEST_VARIANCE}")
        likelihood = GaussianLikelihood(number, mean, variance)
    else:
        feature = KINDS[kind].read_modelled(fields, name)
        likelihood = DiscreteLikelihood(feature, _read_table(fields, feature.size, classes))
    fields.finish()
    return likelihood


def _read_table(fields: Fields, size: int, classes: int) -> Table:
    rows = fields.sequence("likelihood", least=size, most=size)
    table = tuple(fields.row("likelihood", row, classes) for row in rows)
    for column in zip(*table, strict=True):
        _check_distribution(fields, "likelihood", column)
    return table


def _check_distribution(fields: Fields, name: str, values: tuple[float, ...]) -> None:
    if min(values) < 0 or abs(math.fsum(values) - 1) > _SUM_TOLERANCE:
        raise fields.error(name, "the probabilities of one class must be at least 0 and add up to 1")


def _log(probability: float) -> float:
    return math.log(probability) if probability > 0 else -math.inf
