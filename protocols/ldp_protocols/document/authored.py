"""The part of a campaign that its author writes and its document repeats, read and checked: all but the questions.

The subject of an evaluation round is part of it: one model, which its document carries by value, and the bins of its
score. What a device tells of a model is told of the bytes that it verified: nothing is fetched, and nobody can show two
devices two models under one name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from ldp_protocols.document import schema
from ldp_protocols.document.crowd import Crowd, read_crowd
from ldp_protocols.document.federation import read_federation
from ldp_protocols.document.gateway import Gateway, read_gateway
from ldp_protocols.document.issuer import Issuer, read_issuer
from ldp_protocols.document.schema import Label, Projection, read_features, read_label, read_projection
from ldp_protocols.document.windows import WINDOW_GRACE, Windows, read_windows
from ldp_protocols.errors import DocumentError
from ldp_protocols.features import EXAMPLE, MOST_CELLS, MOST_WEIGHT, Feature
from ldp_protocols.fields import Fields, Refusal, integral
from ldp_protocols.mechanisms import DISCRETE, DirectEncoding
from ldp_protocols.mechanisms import MOMENTS as OF_VALUES

if TYPE_CHECKING:
    from ldp_protocols.document.model import Model

VERSION: Final = 1
MODEL: Final = "model"
MOMENTS: Final = "moments"
SCORE: Final = "score"
STATISTICS: Final = "statistics"

MOST_RELEASE: Final = 1 << 40

MOST_KEPT_DAYS: Final = 36_500
"""A hundred years."""

FOR_PEOPLE: Final = ("operator", "contact", "privacy_url", "keep_days")
"""Members that people are shown beside title and purpose; a document only has those that its author gave."""

ANSWERS: Final = ("one", "all")

MOST_BINS: Final = 8
_LIKE: Final = '{"model": {...}, "edges": [-1, 0, 1]}; the model is one that train prints'


def discrete_choices() -> tuple[str, ...]:
    """Mechanisms for an index that an author may name."""
    return "auto", *DISCRETE


def continuous_choices() -> tuple[str, ...]:
    """Mechanisms for a number that an author may name; ``sign`` asks with one of those for an index."""
    return "auto", *OF_VALUES, "sign"


@dataclass(frozen=True)
class Privacy:
    """``epsilon`` is the total loss of one device, whatever it answers; with a ``crowd`` what is lost where all others
    work together.
    """

    epsilon: float
    answers: str = "one"
    discrete: str = "auto"
    continuous: str = "auto"
    theta: float | None = None
    release_every: int | None = None
    """Devices that have to answer between one publication and the next; None leaves that to the operator."""
    crowd: Crowd | None = None

    def to_json(self) -> dict[str, Any]:
        members = asdict(self) | {"crowd": self.crowd and self.crowd.to_json()}
        return {name: one for name, one in members.items() if one is not None or name not in _LEFT_OUT}


_LEFT_OUT: Final = ("release_every", "crowd")
"""Members that a document only has where they say something."""


def read_privacy(value: Any, refuse: Refusal) -> Privacy:
    fields = Fields(value, "privacy", refuse, like='{"epsilon": 1.0}')
    crowd = read_crowd(fields.raw("crowd"), refuse)
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
        crowd=crowd,
    )
    fields.finish()
    if crowd is not None:
        _check_crowd(privacy, crowd.devices, fields)
    return privacy


def _check_crowd(privacy: Privacy, devices: int, fields: Fields) -> None:
    """Refuse what the bound of a crowd is not made for: one question by lot, by direct encoding, batch by batch."""
    wanted = {
        "answers": ("one",),
        "discrete": ("auto", DirectEncoding.name),
        "continuous": ("auto", "sign"),
        "theta": (None,),
    }
    for name, allowed in wanted.items():
        if getattr(privacy, name) not in allowed:
            choices = " or ".join("null" if one is None else one for one in allowed)
            raise fields.error(
                name, f"must be {choices} with a crowd, whose bound is of one question by direct encoding"
            )
    if privacy.crowd is not None and privacy.crowd.epsilon > privacy.epsilon:
        choices = (
            f"is {privacy.crowd.epsilon:g}, above the {privacy.epsilon:g} that one answer reveals if nobody mixes it"
        )
        raise fields.error("crowd.epsilon", choices)
    if privacy.release_every != devices:
        raise fields.error("release_every", f"must be {devices} with a crowd of so many devices, or left out")


def _check_mixed(crowd: Crowd, gateway: Gateway | None, issuer: Issuer | None, fields: Fields) -> None:
    """Refuse a crowd that nobody mixes, or that one person may fill."""
    if gateway is None:
        raise fields.error("gateway", "is missing; with a crowd answers are sealed, and a relay mixes them")
    if issuer is None and crowd.without_issuer is None:
        raise fields.error(
            "issuer",
            "is missing; without its tokens a batch may be one person's. Name one, or say why not in "
            "privacy.crowd.without_issuer",
        )
    if issuer is not None and crowd.without_issuer is not None:
        raise fields.error("privacy.crowd.without_issuer", "must be null where there is an issuer")
    if issuer is not None and (issuer.relay_modulus is None or issuer.tokens != 1):
        name, reason = ("tokens", "must be 1") if issuer.relay_modulus else ("relay_key", "is missing")
        raise fields.error(f"issuer.{name}", f"{reason} with a crowd: the relay admits each person once")


def read_authored(fields: Fields, refuse: Refusal) -> dict[str, Any]:
    """Read what an author writes and a document repeats, by the names of a campaign's fields."""
    fields.integer("version", least=VERSION, most=VERSION)
    title = fields.text("title")
    purpose = fields.text("purpose", default="", longest=2000)
    label = read_label(fields.raw("label"), refuse)
    described = fields.sequence("features", least=1, most=schema.MOST_FEATURES, like=EXAMPLE)
    features = read_features(described, label, refuse)
    privacy = read_privacy(fields.raw("privacy"), refuse)
    study = fields.optional_text("study")
    for_people = {
        "operator": fields.optional_text("operator"),
        "contact": fields.optional_text("contact"),
        "privacy_url": fields.address("privacy_url"),
        "keep_days": fields.integer("keep_days", least=1, most=MOST_KEPT_DAYS) if fields.has("keep_days") else None,
    }
    windows = read_windows(fields.raw("windows"), refuse)
    opens, closes = _read_times(fields, windows)
    gateway = read_gateway(fields.raw("gateway"), refuse)
    projection = read_projection(fields.raw("projection"), features, label, refuse)
    if projection is not None and projection.fitted_on != schema.PUBLIC and study is None:
        raise fields.error(
            "study",
            f"must be named where the projection comes from a private round (that of study {projection.fitted_study}), "
            "or devices could answer both rounds and lose both epsilons",
        )
    _check_cells(asked_features(features, projection), label, windows, fields)
    asks = _read_asked(label, projection, fields)
    issuer = read_issuer(fields.raw("issuer"), refuse)
    federation = read_federation(fields.raw("federation"), refuse)
    if federation is not None and (asks != MODEL or windows or issuer or privacy.crowd):
        raise fields.error("federation", f"is of a campaign of nodes: asks: {MODEL}, no windows, issuer or crowd")
    if privacy.crowd is not None:
        _check_mixed(privacy.crowd, gateway, issuer, fields)
    if windows is not None:
        _check_series(asks, privacy, fields)
    if asks == MOMENTS:
        _check_moments_round(features, privacy, projection, study, fields)
    if asks == SCORE:
        _check_score_round(privacy, projection, study, fields)
    elif fields.raw("evaluation") is not None:
        raise fields.error("evaluation", f"is for rounds with asks: {SCORE}")
    return {
        "title": title,
        "purpose": purpose,
        **for_people,
        "label": label,
        "features": features,
        "privacy": privacy,
        "projection": projection,
        "asks": asks,
        "evaluation": read_evaluation(fields.raw("evaluation"), label, features, refuse) if asks == SCORE else None,
        "study": study,
        "windows": windows,
        "issuer": issuer,
        "federation": federation,
        "opens": opens,
        "closes": closes,
        "gateway": gateway,
    }


def _read_asked(label: Label, projection: Projection | None, fields: Fields) -> str:
    """Read what a campaign is for: statistics where it has no label, and only there."""
    asks = fields.choice("asks", (MODEL, MOMENTS, SCORE, STATISTICS), default=MODEL if label else STATISTICS)
    if asks == STATISTICS and label:
        raise fields.error("label", f"must be left out where asks is {STATISTICS}, which are of values alone")
    if asks != STATISTICS and not label:
        raise fields.error("label", f"is missing, and asks is {asks}; declare one, or ask for {STATISTICS}")
    if asks == STATISTICS and projection is not None:
        raise fields.error("projection", f"must be null where asks is {STATISTICS}; it is made to tell classes apart")
    return asks


def _read_times(fields: Fields, windows: Windows | None) -> tuple[datetime | None, datetime | None]:
    """The times a campaign opens and closes: of a series with its first window and some time after its last."""
    opens, closes = fields.instant("opens"), fields.instant("closes")
    if windows is not None:
        for name, moment in (("opens", opens), ("closes", closes)):
            if moment is not None:
                raise fields.error(name, "must be null in a campaign with windows, which say when devices answer")
        return windows.start, windows.end + WINDOW_GRACE
    if opens and closes and opens >= closes:
        raise fields.error("closes", "must be later than opens")
    return opens, closes


def asked_features(features: Sequence[Feature], projection: Projection | None) -> tuple[Feature, ...]:
    """The features that questions are about, in the order of their groups."""
    if projection is None:
        return tuple(features)
    inputs = {feature.name for feature in projection.inputs}
    return (*(feature for feature in features if feature.name not in inputs), *projection.outputs)


def _check_cells(features: Sequence[Feature], label: Label, windows: Windows | None, fields: Fields) -> None:
    """Moments are two questions, a value and its square. Windows are counted apart."""
    values = sum(feature.cells * (2 if feature.moments else 1) for feature in features)
    cells = (values + 1) * len(label.classes)
    if cells > schema.MOST_CAMPAIGN_CELLS:
        raise fields.error(
            "features",
            f"all questions have {cells} cells, above {schema.MOST_CAMPAIGN_CELLS}; use fewer values or bins",
        )
    if windows is not None and cells * windows.count > schema.MOST_CAMPAIGN_CELLS:
        raise fields.error(
            "windows.count",
            f"all questions have {cells} cells in each of {windows.count} windows; at most "
            f"{schema.MOST_CAMPAIGN_CELLS} in all are counted",
        )


def _check_series(asks: str, privacy: Privacy, fields: Fields) -> None:
    """Refuse windows where nothing is learned by window."""
    if asks not in (MODEL, STATISTICS):
        raise fields.error("windows", f"must be null in a campaign with asks: {asks}; a series is of what is learned")
    if privacy.crowd is not None:
        raise fields.error(
            "windows", "must be null with a crowd: a relay cannot tell the windows of sealed answers apart"
        )
    if privacy.release_every is not None:
        raise fields.error("privacy.release_every", "must be null with windows, which are published one by one")


def _check_moments_round(
    features: Sequence[Feature], privacy: Privacy, projection: Projection | None, study: str | None, fields: Fields
) -> None:
    """Refuse a round that asks for second moments and does not look like one."""
    for position, feature in enumerate(features):
        if feature.number is None:
            raise fields.error(f"features[{position}].kind", f"is {feature.kind}; such a round asks about numbers")
    if privacy.answers != "one":
        raise fields.error("privacy.answers", "must be one in a moments round: it has a question for every pair")
    if privacy.crowd is not None:
        raise fields.error("privacy.crowd", "must be null in a moments round, whose sums are not published")
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

    @property
    def names(self) -> tuple[str, ...]:
        """The places in words: bins of the log odds, or what the model says."""
        if self.edges is None:
            return tuple(f"says {name}" for name in self.model.classes)
        edges = [f"{edge:g}" for edge in self.edges]
        inner = (f"({low}, {high}]" for low, high in pairwise(edges))
        return f"up to {edges[0]}", *inner, f"above {edges[-1]}"

    def place_of(self, scores: Sequence[float]) -> int:
        """The place of a record by its log likelihoods: the edges below its log odds, else the first largest class."""
        if self.edges is None:
            return scores.index(max(scores))
        odds = scores[1] - scores[0]
        return sum([odds > edge for edge in self.edges])

    def to_json(self) -> dict[str, Any]:
        edges = None if self.edges is None else list(self.edges)
        return {"model": dict(self.document), "edges": edges, "weights": list(self.weights)}


def read_evaluation(value: Any, label: Label, features: Sequence[Feature], refuse: Refusal) -> Evaluation:
    """Read the model and the bins of a round that asks about a model: of its label, about nothing but its features."""
    from ldp_protocols.document.model import (
        Model,  # here: models are made of what the modules here read, and few rounds have any
    )

    fields = Fields(value, "evaluation", refuse, like=_LIKE)
    document = fields.raw("model")
    if document is None:
        raise fields.error("model", "is missing; it looks like a model that train prints")
    try:
        model = Model.from_json(json.dumps(document))
    except DocumentError as error:
        raise fields.error("model", str(error)) from None
    if (model.label, model.classes) != (label.name, label.classes):
        raise fields.error("model", "must be of the campaign's label and classes, in their order")
    declared = {feature.name: feature.to_model_json() for feature in features}
    projection = model.projection
    outputs = projection.output_positions if projection else {}
    used = [one.feature for one in model.likelihoods if one.feature.name not in outputs]
    for feature in (*used, *(projection.inputs if projection else ())):
        if declared.get(feature.name) != feature.to_model_json():
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
