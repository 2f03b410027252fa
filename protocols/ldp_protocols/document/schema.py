"""The label and the features that a campaign asks about, and the projection that may stand before them, validated.

All of it is public knowledge. A value list or a bound is never read off the data.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from ldp_protocols.features import MOST_WEIGHT, Feature, NumericFeature, declared_texts, read_feature
from ldp_protocols.fields import Fields, Refusal
from ldp_protocols.values import held, number_of, position_of, positions_of

MOST_FEATURES: Final = 1000
MOST_CLASSES: Final = 1 << 10
MOST_CAMPAIGN_CELLS: Final = 1 << 18
"""Cells of all questions together: it bounds what a document can make a device compute and send (1 MiB)."""

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

    def __bool__(self) -> bool:
        """False for :data:`NO_LABEL`."""
        return len(self.classes) > 1

    def index_of(self, value: object) -> int | None:
        """The class index, or None for a value that was not declared; without a label that of nothing, 0."""
        return position_of("" if value is None else value, self._positions)

    @property
    def names(self) -> tuple[str | None, ...]:
        """The classes in rows of a table; None in place of the one where there is no label."""
        return self.classes if self else (None,)

    @property
    def wanted(self) -> str:
        """The right label of a record, for messages."""
        return f"one of {', '.join(self.classes)}" if self else "left out; the campaign has none"

    @cached_property
    def _positions(self) -> Mapping[str, int]:
        return positions_of(self.classes)

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "classes": list(self.classes), "weight": self.weight}


NO_LABEL: Final = Label("", ("",), 0)
"""The label of a campaign without one: every record is of its only class, so that a question is about a value alone."""


def read_label(value: Any, refuse: Refusal) -> Label:
    """A draft's or document's label; :data:`NO_LABEL` where it has none."""
    if value is None:
        return NO_LABEL
    fields = Fields(value, "label", refuse)
    label = Label(
        name=fields.text("name"),
        classes=declared_texts(fields, "classes", MOST_CLASSES),
        weight=fields.integer("weight", least=0, most=MOST_WEIGHT) if fields.has("weight") else None,
    )
    fields.finish()
    return label


def read_features(values: list[Any], label: Label, refuse: Refusal) -> tuple[Feature, ...]:
    features: list[Feature] = []
    seen = {label.name: "label.name"} if label else {}
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


@dataclass(frozen=True)
class Projection:
    """A projection (PCA, DCA), shipped by the server and applied on the device, in double arithmetic of a fixed order:
    ``outputs[i]`` is a linear function of ``inputs``; shapes: mean and scale (m,), matrix (outputs, m).

    An input x is centred and scaled, u = (x - mean) / scale, x clipped to its public bounds first; output i is
    ``matrix[i][0] * u[0] + matrix[i][1] * u[1] + ...``, added from left to right, and is then an ordinary number
    with public bounds of its own. The document says where the projection was fitted: ``public`` data, or the id
    of a private round, whose study and epsilon it then repeats, because what a model learned from both costs both where
    one device may have answered both.

    ``fitted_study`` and ``fitted_epsilon`` are those of the private round ``fitted_on``; None for ``public``.
    """

    method: str
    inputs: tuple[NumericFeature, ...]
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    matrix: tuple[tuple[float, ...], ...]
    outputs: tuple[NumericFeature, ...]
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
    """The value of a feature in a record; of a projection's output what the inputs give, or None where it holds no
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


def _input(name: str, position: int, features: Sequence[Feature], fields: Fields) -> NumericFeature:
    for feature in features:
        if feature.name == name:
            if feature.number is not None:
                return feature.number
            raise fields.error(
                f"inputs[{position}]", f"{name!r} is {feature.kind}; a projection takes features that are numbers"
            )
    raise fields.error(f"inputs[{position}]", f"{name!r} is not one of the declared features")


def _output(value: Any, position: int, classes: int, refuse: Refusal) -> NumericFeature:
    path = f"projection.outputs[{position}]"
    feature = read_feature(value, path, classes, refuse)
    if feature.number is None:
        raise refuse(f"{path}.kind", f"must be that of a number, not {feature.kind}")
    return feature.number
