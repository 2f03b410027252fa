"""The part of a campaign that its author writes and its document repeats, read and checked: all but the questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from protocols.document.evaluation import read_evaluation
from protocols.document.projection import PUBLIC, Projection, read_projection
from protocols.document.schema import (
    MOST_CAMPAIGN_CELLS,
    MOST_FEATURES,
    ContinuousFeature,
    Feature,
    Label,
    is_gaussian,
    read_features,
    read_label,
)
from protocols.fields import Fields, Refusal
from protocols.mechanisms import DISCRETE
from protocols.mechanisms import MOMENTS as OF_VALUES

VERSION: Final = 1
MODEL: Final = "model"
MOMENTS: Final = "moments"
SCORE: Final = "score"

MOST_RELEASE: Final = 1 << 40

ANSWERS: Final = ("one", "all")

_FEATURES: Final = '[{"name": "age", "kind": "categorical", "values": ["young", "old"]}]'
"""The answer to an author who declared none."""


def discrete_choices() -> tuple[str, ...]:
    """Mechanisms for an index that an author may name."""
    return "auto", *DISCRETE


def continuous_choices() -> tuple[str, ...]:
    """Mechanisms for a number that an author may name; ``sign`` asks with one of those for an index."""
    return "auto", *OF_VALUES, "sign"


@dataclass(frozen=True)
class Privacy:
    """``epsilon`` is the total loss of one device, whatever it answers."""

    epsilon: float
    answers: str = "one"
    discrete: str = "auto"
    continuous: str = "auto"
    theta: float | None = None
    release_every: int | None = None
    """Devices that have to answer between one publication and the next; None leaves that to the operator."""

    def to_json(self) -> dict[str, Any]:
        promised = {} if self.release_every is None else {"release_every": self.release_every}
        return {
            "epsilon": self.epsilon,
            "answers": self.answers,
            "discrete": self.discrete,
            "continuous": self.continuous,
            "theta": self.theta,
            **promised,
        }


def read_privacy(value: Any, refuse: Refusal) -> Privacy:
    fields = Fields(value, "privacy", refuse, like='{"epsilon": 1.0}')
    epsilon = fields.number("epsilon")
    if epsilon <= 0:
        raise fields.error("epsilon", f"must be above 0 (1 is a common choice), not {epsilon}")
    theta = fields.number("theta") if fields.has("theta") else None
    if theta is not None and not 0 < theta <= 1:
        raise fields.error("theta", f"must be above 0 and at most 1 (null takes the best), not {theta}")
    release_every = fields.integer("release_every", least=2, most=MOST_RELEASE) if fields.has("release_every") else None
    privacy = Privacy(
        epsilon=epsilon,
        answers=fields.choice("answers", ANSWERS, default="one"),
        discrete=fields.choice("discrete", discrete_choices(), default="auto"),
        continuous=fields.choice("continuous", continuous_choices(), default="auto"),
        theta=theta,
        release_every=release_every,
    )
    fields.finish()
    return privacy


def read_authored(fields: Fields, refuse: Refusal) -> dict[str, Any]:
    """Read what an author writes and a document repeats, by the names of a campaign's fields."""
    fields.integer("version", least=VERSION, most=VERSION)
    title = fields.text("title")
    purpose = fields.text("purpose", default="", longest=2000)
    label = read_label(fields.raw("label"), refuse)
    described = fields.sequence("features", least=1, most=MOST_FEATURES, like=_FEATURES)
    features = read_features(described, label, refuse)
    privacy = read_privacy(fields.raw("privacy"), refuse)
    study = fields.optional_text("study")
    opens, closes = fields.instant("opens"), fields.instant("closes")
    if opens and closes and opens >= closes:
        raise fields.error("closes", "must be later than opens")
    projection = read_projection(fields.raw("projection"), features, label, refuse)
    if projection is not None and projection.fitted_on != PUBLIC and study is None:
        raise fields.error(
            "study",
            f"must be named where the projection comes from a private round (that of study {projection.fitted_study}), "
            "or devices could answer both rounds and lose both epsilons",
        )
    _check_cells(asked_features(features, projection), label, fields)
    asks = fields.choice("asks", (MODEL, MOMENTS, SCORE), default=MODEL)
    if asks == MOMENTS:
        _check_moments_round(features, privacy, projection, study, fields)
    if asks == SCORE:
        _check_score_round(privacy, projection, study, fields)
    elif fields.raw("evaluation") is not None:
        raise fields.error("evaluation", f"is for rounds with asks: {SCORE}")
    return {
        "title": title,
        "purpose": purpose,
        "label": label,
        "features": features,
        "privacy": privacy,
        "projection": projection,
        "asks": asks,
        "evaluation": read_evaluation(fields.raw("evaluation"), label, features, refuse) if asks == SCORE else None,
        "study": study,
        "opens": opens,
        "closes": closes,
    }


def asked_features(features: Sequence[Feature], projection: Projection | None) -> tuple[Feature, ...]:
    """The features that questions are about, in the order of their groups."""
    if projection is None:
        return tuple(features)
    inputs = {feature.name for feature in projection.inputs}
    return (*(feature for feature in features if feature.name not in inputs), *projection.outputs)


def _check_cells(asked: Sequence[Feature], label: Label, fields: Fields) -> None:
    """A Gaussian feature has two questions, each of up to two cells a class, or three where it may be missing."""
    values = sum(4 + 2 * feature.missing if is_gaussian(feature) else feature.cells for feature in asked)
    cells = (values + 1) * len(label.classes)
    if cells > MOST_CAMPAIGN_CELLS:
        raise fields.error(
            "features", f"all questions have {cells} cells, above {MOST_CAMPAIGN_CELLS}; use fewer values or bins"
        )


def _check_moments_round(
    features: Sequence[Feature], privacy: Privacy, projection: Projection | None, study: str | None, fields: Fields
) -> None:
    """Refuse a round that asks for second moments and does not look like one."""
    for position, feature in enumerate(features):
        if not isinstance(feature, ContinuousFeature):
            raise fields.error(f"features[{position}].kind", "a moments round asks about continuous features only")
    if privacy.answers != "one":
        raise fields.error("privacy.answers", "must be one in a moments round: it has a question for every pair")
    if privacy.release_every is not None:
        raise fields.error("privacy.release_every", "must be null in a moments round, whose sums are not published")
    if projection is not None:
        raise fields.error("projection", "must be null in a moments round, which is there to fit one")
    if study is None:
        raise fields.error("study", "a moments round names a study, so that no device answers it and the next round")


def _check_score_round(privacy: Privacy, projection: Projection | None, study: str | None, fields: Fields) -> None:
    """Refuse a round that asks about a model and does not look like one."""
    if privacy.answers != "one":
        raise fields.error("privacy.answers", "must be one in an evaluation round: a device answers one question of it")
    if projection is not None:
        raise fields.error("projection", "must be null in an evaluation round; its model carries its own")
    if study is None:
        raise fields.error("study", "an evaluation round is of the study that its model was learned in")
