"""Projections (PCA, DCA) shipped by the server and applied on the device, in double arithmetic of a fixed order.

An input x is centred and scaled, u = (x - mean) / scale, x clipped to its public bounds first; output i is
``matrix[i][0] * u[0] + matrix[i][1] * u[1] + ...``, added from left to right, and is then an ordinary continuous
feature with public bounds of its own. The document says where the projection was fitted: ``public`` data, or the id of
a private round, whose study and epsilon it then repeats, because what a model learned from both costs both where one
device may have answered both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from protocols.document.schema import MOST_FEATURES, ContinuousFeature, Feature, Label, read_feature
from protocols.fields import Fields, Refusal
from protocols.values import held, number_of

METHODS: Final = ("pca", "dca")
PUBLIC: Final = "public"

_CAMPAIGN_ID: Final = re.compile(r"[A-Za-z0-9_-]{43}")


@dataclass(frozen=True)
class Projection:
    """``outputs[i]`` is a linear function of ``inputs``; shapes: mean and scale (m,), matrix (outputs, m).

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
        return {
            "method": self.method,
            "inputs": [feature.name for feature in self.inputs],
            "mean": list(self.mean),
            "scale": list(self.scale),
            "matrix": [list(row) for row in self.matrix],
            "outputs": [feature.to_json() for feature in self.outputs],
            "fitted_on": self.fitted_on,
            **(
                {}
                if self.fitted_on == PUBLIC
                else {"fitted_study": self.fitted_study, "fitted_epsilon": self.fitted_epsilon}
            ),
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
