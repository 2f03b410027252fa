"""The label and the features that a campaign asks about, and the projection that may stand before them, validated.

All of it is public knowledge. A value list or a bound is never read off the data.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Final, TypeGuard

from ldp_protocols.fields import Fields, Refusal, read_bounds
from ldp_protocols.values import composed, held, number_of, positions_of, text_of

MISSING: Final = "missing"
"""A categorical feature that lists this value answers with it where the record has no declared value, and models take
it for a value like any other."""

MOST_FEATURES: Final = 1000
MOST_VALUES: Final = 1 << 14
MOST_CLASSES: Final = 1 << 10
MOST_CELLS: Final = 1 << 16
"""Cells of one question."""

MOST_CAMPAIGN_CELLS: Final = 1 << 18
"""Cells of all questions together: it bounds what a document can make a device compute and send (1 MiB)."""

MOST_WEIGHT: Final = 1 << 16

METHODS: Final = ("pca", "dca")
PUBLIC: Final = "public"

_CAMPAIGN_ID: Final = re.compile(r"[A-Za-z0-9_-]{43}")


@dataclass(frozen=True)
class Label:
    """The class to learn. ``weight`` says how often it is asked alone, beside those of the features. 0 never does: pair
    questions and signs tell the classes too, Laplace vectors and single bits do not. None leaves it to what is asked: a
    twentieth of the devices where every feature is discrete and each device gives one answer, 1 elsewhere.
    """

    name: str
    classes: tuple[str, ...]
    weight: int | None = None

    def index_of(self, value: object) -> int | None:
        """The class index, or None for a value that was not declared."""
        return _index_of(value, self._positions)

    @cached_property
    def _positions(self) -> Mapping[str, int]:
        return positions_of(self.classes)

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "classes": list(self.classes), "weight": self.weight}


@dataclass(frozen=True)
class CategoricalFeature:
    """One of ``values``, or ``missing`` where the author does not call it complete.

    Where ``ordered``, the values are listed in their order (from either end): an estimator may take what a value says
    of the class to be like what its neighbours say. Nothing that a device answers depends on it.
    """

    name: str
    values: tuple[str, ...]
    weight: int = 1
    missing: bool = True
    ordered: bool = False

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.values)

    @property
    def cells(self) -> int:
        """Count what there is to answer: the values, and after them that there is none where that may be."""
        return self.size + self.missing

    def index_of(self, value: object) -> int | None:
        """The value's index; for a missing or undeclared one that of ``missing`` where it is declared, else None."""
        position = _index_of(value, self._positions)
        return self._positions.get(MISSING) if position is None else position

    @cached_property
    def _positions(self) -> Mapping[str, int]:
        return positions_of(self.values)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "kind": "categorical",
            "values": list(self.values),
            "weight": self.weight,
            "missing": self.missing,
            **({"ordered": True} if self.ordered else {}),
        }


@dataclass(frozen=True)
class ContinuousFeature:
    """A number, clipped to [low, high]; with ``bins`` it is discretised, without it is modelled as Gaussian. It may be
    ``missing`` where the author does not call it complete.
    """

    name: str
    low: float
    high: float
    bins: int | None = None
    weight: int = 1
    missing: bool = True

    @property
    def size(self) -> int:
        """Number of bins."""
        if self.bins is None:
            raise TypeError(f"feature {self.name} is not discretised")
        return self.bins

    @property
    def ordered(self) -> bool:
        """True where it has values in an order: bins are."""
        return self.bins is not None

    @property
    def cells(self) -> int:
        """Count what there is to answer: the bins, and after them that there is no value where that may be."""
        return self.size + self.missing

    def index_of(self, value: object) -> int | None:
        """The bin of a number (equal width, half-open, the last one closed; clipped), or None for anything else."""
        number = number_of(value)
        return None if number is None else bisect_right(self.inner_edges, number)

    def scaled(self, number: float) -> float:
        """T = 2 (x - low) / (high - low) - 1 in [-1, 1], x clipped first."""
        low, high = float(self.low), float(self.high)
        return min(max(2 * ((self.clip(number) - low) / (high - low)) - 1, -1.0), 1.0)

    def clip(self, number: float) -> float:
        """The nearest number in [low, high]."""
        return min(max(number, float(self.low)), float(self.high))

    @cached_property
    def inner_edges(self) -> tuple[float, ...]:
        """The bins - 1 edges between bins: low + (high - low) i / bins, in double arithmetic."""
        low, span = float(self.low), float(self.high) - float(self.low)
        return tuple(low + span * i / self.size for i in range(1, self.size))

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "kind": "continuous", **asdict(self)}


Feature = CategoricalFeature | ContinuousFeature


def is_gaussian(feature: Feature | None) -> TypeGuard[ContinuousFeature]:
    """Return true where a feature is modelled as Gaussian: continuous, without bins."""
    return isinstance(feature, ContinuousFeature) and feature.bins is None


def read_label(value: Any, refuse: Refusal) -> Label:
    fields = Fields(value, "label", refuse, like='{"name": "missed_payment", "classes": ["yes", "no"]}')
    label = Label(
        name=fields.text("name"),
        classes=_declared(fields, "classes", MOST_CLASSES),
        weight=fields.integer("weight", least=0, most=MOST_WEIGHT) if fields.has("weight") else None,
    )
    fields.finish()
    return label


def read_features(values: list[Any], label: Label, refuse: Refusal) -> tuple[Feature, ...]:
    features: list[Feature] = []
    seen = {label.name: "label.name"}
    for position, value in enumerate(values):
        place = f"features[{position}]"
        feature = read_feature(value, place, len(label.classes), refuse)
        if feature.name in seen:
            raise refuse(
                f"{place}.name", f"{feature.name!r} is already used by {seen[feature.name]}; names must be different"
            )
        seen[feature.name] = f"{place}.name"
        features.append(feature)
    return tuple(features)


def read_feature(value: Any, path: str, classes: int, refuse: Refusal) -> Feature:
    """One declared feature; ``path`` names its place in messages."""
    fields = Fields(value, path, refuse)
    name = fields.text("name")
    kind = fields.choice("kind", ("categorical", "continuous"))
    weight = fields.integer("weight", least=1, most=MOST_WEIGHT, default=1)
    feature: Feature
    if kind == "categorical":
        values = _declared(fields, "values", MOST_VALUES)
        missing = _read_missing(fields, values)
        feature = CategoricalFeature(name, values, weight, missing, _read_ordered(fields, values))
        cells, place = feature.cells * classes, "values"
    else:
        low, high = read_bounds(fields)
        bins = fields.integer("bins", least=2, most=MOST_VALUES) if fields.has("bins") else None
        feature = ContinuousFeature(name, low, high, bins, weight, _read_missing(fields))
        cells, place = ((bins or 2) + feature.missing) * classes, "bins"
        # Every edge is rounded by less than two such steps, so that all of them stay apart.
        if bins is not None and (float(high) - float(low)) / bins < 4 * math.ulp(max(abs(low), abs(high))):
            raise fields.error("bins", f"{bins} bins between {low} and {high} are narrower than a double resolves")
    fields.finish()
    if cells > MOST_CELLS:
        raise fields.error(place, f"values times classes must be at most {MOST_CELLS}, not {cells}")
    return feature


def _read_missing(fields: Fields, values: Sequence[str] = ()) -> bool:
    """Return whether a value may be missing: unless the author says false, or lists ``missing`` as a value itself."""
    may_be = fields.switch("missing") is not False
    if MISSING in values and fields.has("missing") and may_be:
        raise fields.error("missing", f"{MISSING!r} is one of the values, so that no value is missing; leave this out")
    return may_be and MISSING not in values


def _read_ordered(fields: Fields, values: Sequence[str]) -> bool:
    """Return whether the values are listed in their order; ``missing`` cannot be one of them then."""
    ordered = fields.switch("ordered") is True
    if ordered and MISSING in values:
        raise fields.error(
            "ordered",
            f"{MISSING!r} has no place in an order; leave it out: those without a value have a cell of their own",
        )
    return ordered


def _index_of(value: object, positions: Mapping[str, int]) -> int | None:
    """The position of the declared text that a value means."""
    text = text_of(value)
    return None if text is None else positions.get(text)


def _declared(fields: Fields, name: str, most: int) -> tuple[str, ...]:
    """The classes or the values: texts that stay different when accents are written in one way."""
    texts = fields.texts(name, least=2, most=most)
    if len({composed(text) for text in texts}) != len(texts):
        raise fields.error(name, "two entries are one text in Unicode's form NFC; every entry must be different")
    return texts


@dataclass(frozen=True)
class Projection:
    """A projection (PCA, DCA), shipped by the server and applied on the device, in double arithmetic of a fixed order:
    ``outputs[i]`` is a linear function of ``inputs``; shapes: mean and scale (m,), matrix (outputs, m).

    An input x is centred and scaled, u = (x - mean) / scale, x clipped to its public bounds first; output i is
    ``matrix[i][0] * u[0] + matrix[i][1] * u[1] + ...``, added from left to right, and is then an ordinary continuous
    feature with public bounds of its own. The document says where the projection was fitted: ``public`` data, or the id
    of a private round, whose study and epsilon it then repeats, because what a model learned from both costs both where
    one device may have answered both.

    ``fitted_study`` and ``fitted_epsilon`` are those of the private round ``fitted_on``; None for ``public``.
    """

    method: str
    inputs: tuple[ContinuousFeature, ...]
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    matrix: tuple[tuple[float, ...], ...]
    outputs: tuple[ContinuousFeature, ...]
    fitted_on: str
    fitted_study: str | None = None
    fitted_epsilon: float | None = None

    @cached_property
    def output_positions(self) -> Mapping[str, int]:
        """Row of the matrix by the output's name."""
        return {feature.name: position for position, feature in enumerate(self.outputs)}

    def output(self, position: int, values: Sequence[float]) -> float:
        """Output number ``position`` of the inputs' values, which are clipped to their bounds here."""
        total = 0.0
        for feature, mean, scale, factor, value in zip(
            self.inputs, self.mean, self.scale, self.matrix[position], values, strict=True
        ):
            total += factor * ((feature.clip(value) - mean) / scale)
        return total

    def to_json(self) -> dict[str, Any]:
        private = {"fitted_study": self.fitted_study, "fitted_epsilon": self.fitted_epsilon}
        return {
            "method": self.method,
            "inputs": [feature.name for feature in self.inputs],
            "mean": list(self.mean),
            "scale": list(self.scale),
            "matrix": [list(row) for row in self.matrix],
            "outputs": [feature.to_json() for feature in self.outputs],
            "fitted_on": self.fitted_on,
            **({} if self.fitted_on == PUBLIC else private),
        }


def value_of(
    record: Mapping[str, object], name: str, projection: Projection | None, missing: Callable[[Projection, int], float]
) -> object:
    """Return what a record holds of a feature; of a projection's output what the inputs give, or None where it holds no
    number of any. ``missing(projection, position)`` stands in for an input without one.
    """
    if projection is None or name not in projection.output_positions:
        return held(record, name)
    numbers = [number_of(held(record, feature.name)) for feature in projection.inputs]
    if all(number is None for number in numbers):
        return None
    values = [missing(projection, position) if number is None else number for position, number in enumerate(numbers)]
    return projection.output(projection.output_positions[name], values)


def read_projection(value: Any, features: Sequence[Feature], label: Label, refuse: Refusal) -> Projection | None:
    """A draft's or document's projection, None where there is none; wrong shapes and numbers are refused here."""
    if value is None:
        return None
    fields = Fields(value, "projection", refuse)
    method = fields.choice("method", METHODS)
    names = fields.texts("inputs", least=1, most=MOST_FEATURES)
    inputs = tuple(_input(name, position, features, fields) for position, name in enumerate(names))
    mean = fields.numbers("mean", len(inputs))
    scale = fields.numbers("scale", len(inputs))
    if min(scale) <= 0:
        raise fields.error("scale", "every scale must be above 0")
    described = fields.sequence("outputs", least=1, most=MOST_FEATURES)
    if len(described) > len(inputs):
        raise fields.error(
            "outputs", f"{len(inputs)} inputs have at most {len(inputs)} components, not {len(described)}"
        )
    outputs = tuple(_output(entry, position, len(label.classes), refuse) for position, entry in enumerate(described))
    rows = fields.sequence("matrix", least=0, most=MOST_FEATURES)
    if len(rows) != len(outputs):
        raise fields.error("matrix", f"must have one row for each of the {len(outputs)} outputs, not {len(rows)} rows")
    matrix = tuple(fields.row(f"matrix[{position}]", row, len(inputs)) for position, row in enumerate(rows))
    bounds = zip(inputs, mean, scale, strict=True)
    largest = [max(abs(feature.low - m), abs(feature.high - m)) / s for feature, m, s in bounds]
    for position, row in enumerate(matrix):
        if not any(row):
            raise fields.error(f"matrix[{position}]", "a row of zeros projects everything to one point")
        if not math.isfinite(sum(abs(factor) * u for factor, u in zip(row, largest, strict=True))):
            raise fields.error(f"matrix[{position}]", "gives outputs beyond a double; use smaller factors")
    fitted_on, fitted_study, fitted_epsilon = _read_origin(fields)
    fields.finish()
    taken = {label.name, *(feature.name for feature in features)}
    for position, output in enumerate(outputs):
        if output.name in taken:
            raise fields.error(f"outputs[{position}].name", f"{output.name!r} is already used; names must be different")
        taken.add(output.name)
    return Projection(method, inputs, mean, scale, matrix, outputs, fitted_on, fitted_study, fitted_epsilon)


def _read_origin(fields: Fields) -> tuple[str, str | None, float | None]:
    """Read where the projection was fitted: ``public``, or a private round's id, study and epsilon."""
    fitted_on, study = fields.text("fitted_on"), fields.optional_text("fitted_study")
    epsilon = fields.number("fitted_epsilon") if fields.has("fitted_epsilon") else None
    if fitted_on == PUBLIC:
        for name, value in (("fitted_study", study), ("fitted_epsilon", epsilon)):
            if value is not None:
                raise fields.error(name, "is for a private round; public data has none")
        return fitted_on, None, None
    if not _CAMPAIGN_ID.fullmatch(fitted_on):
        raise fields.error("fitted_on", f"must be {PUBLIC!r} or the id of the campaign of a private round")
    if study is None:
        raise fields.error("fitted_study", f"must be the study of the private round {fitted_on}")
    if epsilon is None or epsilon <= 0:
        raise fields.error("fitted_epsilon", f"must be the total epsilon of the private round {fitted_on}, above 0")
    return fitted_on, study, epsilon


def _input(name: str, position: int, features: Sequence[Feature], fields: Fields) -> ContinuousFeature:
    for feature in features:
        if feature.name == name:
            if isinstance(feature, ContinuousFeature):
                return feature
            raise fields.error(
                f"inputs[{position}]", f"{name!r} is categorical; a projection takes continuous features"
            )
    raise fields.error(f"inputs[{position}]", f"{name!r} is not one of the declared features")


def _output(value: Any, position: int, classes: int, refuse: Refusal) -> ContinuousFeature:
    path = f"projection.outputs[{position}]"
    feature = read_feature(value, path, classes, refuse)
    if not isinstance(feature, ContinuousFeature):
        raise refuse(f"{path}.kind", "must be continuous")
    return feature
