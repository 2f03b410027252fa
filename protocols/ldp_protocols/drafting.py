"""Drafts: checked, and written as the document that devices read, with the questions, their budgets, their mechanisms
(of least predicted variance where the author leaves that open), and the bins of a score that an evaluation asks about.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement
from random import Random
from typing import Any, Final

from ldp_protocols.blanket import largest_local
from ldp_protocols.document.authored import (
    FOR_PEOPLE,
    MOMENTS,
    MOST_BINS,
    VERSION,
    Evaluation,
    Privacy,
    asked_features,
    read_authored,
)
from ldp_protocols.document.authored import SCORE as EVALUATION
from ldp_protocols.document.crowd import read_crowd
from ldp_protocols.document.issuer import Issuer
from ldp_protocols.document.model import DiscreteLikelihood, Likelihood, Model
from ldp_protocols.document.questions import (
    INDEX,
    JOINT,
    LABEL,
    MOMENT,
    MOST_PRODUCTS,
    PAIR,
    PRODUCT,
    RIGHT,
    SCORE,
    SIGN,
    SQUARE,
    VALUE,
    Question,
)
from ldp_protocols.document.schema import MOST_CAMPAIGN_CELLS, MOST_FEATURES, Label
from ldp_protocols.errors import DraftError
from ldp_protocols.exact import divide_down, exact_epsilon
from ldp_protocols.features import MOST_CELLS, Feature
from ldp_protocols.fields import Fields, parse_json, shorten
from ldp_protocols.mechanisms import (
    DISCRETE,
    PURE,
    AnyMechanism,
    DirectEncoding,
    Mechanism,
    PureMechanism,
    ThresholdingHistogramEncoding,
)
from ldp_protocols.mechanisms import MOMENTS as OF_VALUES

AUTO: Final = "auto"

LEAST_EPSILON: Final = 1e-6
"""The least epsilon of one question that a draft may ask for."""

MOST_LOCAL: Final = 4
"""The largest local epsilon of a campaign with a crowd, where its author says no other."""

_LABEL_WEIGHT: Final = 5
_WHOLE: Final = 100
"""In 100 devices 5 answer the class alone, where the author leaves that open and every other question tells it too."""

_RECORDS: Final = 2000
"""Records drawn of each class."""

_FURTHEST: Final = 700.0
"""Log odds beyond which exp overflows."""

_SQUARED_MEAN: Final = 1 / 3
"""E[t^2] of values, and of class means, that lie anywhere in [-1, 1] alike."""


def compile_document(draft: Mapping[str, Any] | str | bytes) -> bytes:
    """The document of a draft (mapping or JSON), always the same bytes. Raises DraftError, which names the field."""
    if isinstance(draft, (str, bytes)):
        draft = parse_json(draft, DraftError)
    authored = _read(draft)
    issuer: Issuer | None = authored["issuer"]
    if issuer is not None and issuer.relay_modulus == issuer.modulus:
        raise DraftError("issuer.relay_key", "must be another key: a token for a relay would pass for an answer's")
    _check_round(*(authored[name] for name in ("asks", "label", "features", "privacy")))
    return _write(authored, _questions(authored))


def _spread_edges(declared: Any, place: int) -> Any:
    """The feature with the bounds and bins that its edges imply, where it leaves them out."""
    edges = declared.get("edges") if isinstance(declared, Mapping) else None
    if edges is None:
        return declared
    if not isinstance(edges, (list, tuple)) or len(edges) < 3:
        right = "a list of at least three numbers that rise, such as [0, 18, 65, 120]"
        raise DraftError(f"features[{place}].edges", f"must be {right}, not {shorten(repr(edges))}")
    return {"low": edges[0], "high": edges[-1], "bins": len(edges) - 1, **declared}


def _read(draft: Any) -> dict[str, Any]:
    """The author's part, checked; with a crowd and no epsilon, the largest local one that keeps its promise."""
    if isinstance(draft, Mapping) and isinstance(draft.get("features"), (list, tuple)):
        draft = {**draft, "features": [_spread_edges(one, place) for place, one in enumerate(draft["features"])]}
    privacy = draft.get("privacy") if isinstance(draft, Mapping) else None
    if not isinstance(privacy, Mapping) or (crowd := read_crowd(privacy.get("crowd"), DraftError)) is None:
        return _checked(draft)
    privacy = {"release_every": crowd.devices, **privacy}
    if privacy.get("epsilon") is not None:
        if "most_local" in privacy:
            raise DraftError(
                "privacy.most_local", "is for a campaign that leaves its local epsilon open; say one of two"
            )
        return _checked({**draft, "privacy": privacy})
    fields = Fields({"most_local": privacy.pop("most_local", None)}, "privacy", DraftError)
    most = fields.number("most_local") if fields.has("most_local") else MOST_LOCAL
    if most <= 0:
        raise fields.error("most_local", f"must be above 0 ({MOST_LOCAL} is the default), not {most}")
    authored = _checked({**draft, "privacy": {**privacy, "epsilon": most}})
    sizes = [(question.domain_size, question.weight) for question in _questions(authored)]
    local = authored["privacy"]
    return authored | {"privacy": replace(local, epsilon=largest_local(sizes, crowd, most))}


def _checked(draft: Any) -> dict[str, Any]:
    fields = Fields(draft, "", DraftError)
    described = fields.raw("features")
    for place, one in enumerate(described if isinstance(described, (list, tuple)) else ()):
        if isinstance(one, Mapping) and one.get("several"):
            reason = "no set is asked; declare a feature with the values yes and no for each of its members"
            raise DraftError(f"features[{place}].several", reason)
    authored = read_authored(fields, DraftError)
    authored["pairs"] = _read_pairs(fields, authored)
    fields.finish()
    evaluation: Evaluation | None = authored["evaluation"]
    if evaluation is not None and evaluation.edges is None and len(evaluation.model.classes) == 2:
        authored["evaluation"] = replace(evaluation, edges=score_edges(evaluation.model))
    return authored


def _read_pairs(fields: Fields, authored: Mapping[str, Any]) -> list[tuple[Feature, Feature]]:
    """Pairs of features that are asked together, which a document has as questions alone. Raises DraftError."""
    if not fields.has("pairs"):
        return []
    if authored["label"]:
        raise fields.error("pairs", "are of a campaign without a label; with one every question is of the class, too")
    declared = {feature.name: feature for feature in authored["features"]}
    pairs: list[tuple[Feature, Feature]] = []
    for place, pair in enumerate(fields.sequence("pairs", least=0, most=MOST_FEATURES)):
        key = f"pairs[{place}]"
        names = Fields({key: pair}, "", DraftError).texts(key, least=2, most=2)
        for name in names:
            if (feature := declared.get(name)) is None:
                raise fields.error(key, f"{name!r} is not one of the declared features")
            if feature.moments:
                raise fields.error(key, f"{name!r} has no values to count; give it {feature.sized_by}")
        first, second = (declared[name] for name in names)
        if {first, second} in map(set, pairs):
            raise fields.error(key, f"{first.name} and {second.name} stand in the list twice")
        if first.cells * second.cells > MOST_CELLS:
            raise fields.error(key, f"has {first.cells * second.cells} cells, above {MOST_CELLS}; use fewer values")
        pairs.append((first, second))
    windows = authored["windows"].count if authored["windows"] else 1
    cells = windows * sum(feature.cells for feature in declared.values())
    cells += windows * sum(first.cells * second.cells for first, second in pairs)
    if cells > MOST_CAMPAIGN_CELLS:
        raise fields.error("pairs", f"all questions have {cells} cells, above {MOST_CAMPAIGN_CELLS}; ask fewer pairs")
    return pairs


def _questions(authored: Mapping[str, Any]) -> tuple[Question, ...]:
    privacy: Privacy = authored["privacy"]
    if authored["evaluation"] is not None:
        return _evaluation_questions(authored["evaluation"], privacy)
    asked_of = asked_features(authored["features"], authored["projection"])
    more = {"pairs": authored["pairs"], "moments": authored["asks"] == MOMENTS}
    return compile_questions(authored["label"], asked_of, privacy, **more)


def _write(authored: Mapping[str, Any], questions: tuple[Question, ...]) -> bytes:
    """The one serialisation that compile produces: fixed key order, no white space, UTF-8."""
    document = {
        "version": VERSION,
        "title": authored["title"],
        "purpose": authored["purpose"],
        **{name: authored[name] for name in FOR_PEOPLE if authored[name] is not None},
        **({"label": authored["label"].to_json()} if authored["label"] else {}),
        "features": [feature.to_json() for feature in authored["features"]],
        "privacy": authored["privacy"].to_json(),
        "projection": authored["projection"].to_json() if authored["projection"] else None,
        "asks": authored["asks"],
        **({"evaluation": authored["evaluation"].to_json()} if authored["evaluation"] else {}),
        "study": authored["study"],
        **({"issuer": authored["issuer"].to_json()} if authored["issuer"] else {}),
        **({"federation": authored["federation"].to_json()} if authored["federation"] else {}),
        **_times(authored),
        **({"gateway": authored["gateway"].to_json()} if authored["gateway"] else {}),
        "questions": [question.to_json() for question in questions],
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _times(authored: Mapping[str, Any]) -> dict[str, Any]:
    if authored["windows"] is not None:
        return {"opens": None, "closes": None, "windows": authored["windows"].to_json()}
    return {name: (at := authored[name]) and at.isoformat().replace("+00:00", "Z") for name in ("opens", "closes")}


def _check_round(asks: str, label: Label, features: Sequence[Feature], privacy: Privacy) -> None:
    """Refuse what a round of moments, or of an evaluation, never asks. Raises DraftError."""
    if asks == EVALUATION and privacy.continuous != AUTO:
        raise DraftError(
            "privacy.continuous",
            f"is {privacy.continuous}, and an evaluation round asks about no feature. Leave it out, or say auto",
        )
    if asks != MOMENTS:
        return
    for position, feature in enumerate(features):
        if feature.number and not feature.moments:
            raise DraftError(
                f"features[{position}].{feature.sized_by}",
                f"is {feature.size}, and a round of moments asks for the number itself. Leave it out here; the round "
                "that follows may have bins",
            )
    said = {"discrete": None if privacy.discrete == AUTO else privacy.discrete, "theta": privacy.theta}
    for name, value in said.items():
        if label.weight == 0 and value is not None:
            raise DraftError(
                f"privacy.{name}",
                f"is {value}, and says how a round of moments asks for the label alone, which it does not. Leave it "
                "out, or ask for the label (label.weight 1, or leave it out)",
            )


@dataclass(frozen=True)
class _Asked:
    """A question whose mechanism is still to be found. ``cells`` of an index, 0 for a value."""

    kind: str
    group: int
    weight: int
    feature: str | None = None
    other: str | None = None
    cells: int = 0


def compile_questions(
    label: Label,
    features: Sequence[Feature],
    privacy: Privacy,
    *,
    pairs: Sequence[tuple[Feature, Feature]] = (),
    moments: bool = False,
) -> tuple[Question, ...]:
    """The questions of a campaign, the label's first, with mechanisms chosen and budget split as ``privacy``
    says.

    ``moments`` asks what fitting a projection takes: every feature's value with the class, and the product of every
    pair of features (a feature with itself: its square). Raises DraftError.
    """
    classes = len(label.classes)
    groups = len(features) + (label.weight != 0) + len(pairs)
    epsilon = divide_down(privacy.epsilon, groups) if privacy.answers == "all" else privacy.epsilon
    _check_epsilon(epsilon)
    exact = exact_epsilon(epsilon)
    _check_complete([one for one in features if moments or one.moments], privacy)
    theta = _threshold(privacy)
    asked = _all_asked(label, features, privacy, moments=moments)
    asked += [
        _Asked(JOINT, group, 1, first.name, second.name, cells=first.cells * second.cells)
        for group, (first, second) in enumerate(pairs, start=len(features) + 1)
    ]
    indexed = {one: make_discrete(_discrete(privacy), one.cells, exact, theta) for one in asked if one.cells}
    information, alike = _classes_told(asked, indexed, classes, everything=privacy.answers == "all")
    incomplete = {feature.name for feature in features if feature.missing}

    @cache
    def of_values(product: bool, missing: bool) -> AnyMechanism:
        if missing or privacy.crowd:
            among = (DirectEncoding,) if privacy.crowd else ()
            return make_sign(1 if product else classes, exact, missing=missing, among=among)
        if product:
            return make_continuous(privacy.continuous, 1, exact)
        return make_continuous(privacy.continuous, classes, exact, classes_told=information, alike=alike)

    questions = []
    for index, one in enumerate(asked):
        shape = one.kind == PRODUCT, not incomplete.isdisjoint((one.feature, one.other))
        mechanism: AnyMechanism = indexed[one] if one in indexed else of_values(*shape)
        encoding = INDEX if one in indexed else SIGN if mechanism.name in DISCRETE else MOMENT
        questions.append(
            Question(index, one.kind, one.feature, one.other, one.group, encoding, mechanism, epsilon, one.weight)
        )
    if label and not moments and all(question.encoding == MOMENT for question in questions):
        raise DraftError(
            "label.weight",
            f"is 0, and no question tells the class: {mechanism.name} asks for values alone, and a model needs the "
            "classes' shares. Ask for the label too (1, or leave it out), or for values with continuous: sign",
        )
    return tuple(questions)


def _evaluation_questions(evaluation: Evaluation, privacy: Privacy) -> tuple[Question, ...]:
    """Questions about a model, by the evaluation's weights: is it right (by ``de``), and its score with the class."""
    _check_epsilon(privacy.epsilon)
    exact = exact_epsilon(privacy.epsilon)
    cells = evaluation.places * len(evaluation.model.classes)
    made = (
        (RIGHT, DirectEncoding.make(2, exact)),
        (SCORE, make_discrete(_discrete(privacy), cells, exact, _threshold(privacy))),
    )
    questions = [(*one, weight) for one, weight in zip(made, evaluation.weights, strict=True) if weight]
    return tuple(
        Question(index, kind, None, None, 0, INDEX, mechanism, privacy.epsilon, weight)
        for index, (kind, mechanism, weight) in enumerate(questions)
    )


def _discrete(privacy: Privacy) -> str:
    """The mechanism for an index: direct encoding in a crowd, which loses nothing where reports are mixed."""
    return DirectEncoding.name if privacy.crowd else privacy.discrete


def _threshold(privacy: Privacy) -> Fraction | None:
    return None if privacy.theta is None else Fraction(repr(float(privacy.theta)))


def _check_complete(features: Sequence[Feature], privacy: Privacy) -> None:
    """Refuse features without a value where noisy sums are asked for, which have no place for it."""
    if privacy.continuous in (AUTO, SIGN):
        return
    for feature in features:
        if feature.missing:
            raise DraftError(
                "privacy.continuous",
                f"{privacy.continuous} cannot tell that a value of {feature.name} is missing; take sign or auto, or "
                'declare "missing": false for every number without bins',
            )


def _check_epsilon(epsilon: float) -> None:
    if epsilon < LEAST_EPSILON:
        raise DraftError(
            "privacy.epsilon", f"leaves {epsilon:g} for a question; below {LEAST_EPSILON:g} nothing can be learned"
        )


def _all_asked(label: Label, features: Sequence[Feature], privacy: Privacy, *, moments: bool) -> list[_Asked]:
    """The asked questions, in the order of the document.

    A twentieth of the devices answer the class alone, and not as many as for a feature, where the author left it open
    and every pair tells the class as well: more devices there are lost to the features.
    """
    open_label = label.weight is None and privacy.answers == "one"
    classes, seldom = len(label.classes), not moments and open_label and not any(one.moments for one in features)
    whole = _WHOLE - _LABEL_WEIGHT if seldom else 1
    alone = 1 if label.weight is None else label.weight
    if seldom:
        alone = _LABEL_WEIGHT * sum(feature.weight for feature in features)
    questions = [_Asked(LABEL, 0, alone, cells=classes)] if alone else []
    for group, feature in enumerate(features, start=1):
        weight = whole * feature.weight
        if moments or feature.moments:
            kinds = (VALUE,) if moments else (VALUE, SQUARE)
            questions += [_Asked(kind, group, weight, feature.name) for kind in kinds]
        else:
            questions.append(_Asked(PAIR, group, weight, feature.name, cells=feature.cells * classes))
    if moments:
        pairs = list(combinations_with_replacement(features, 2))
        if len(pairs) > MOST_PRODUCTS:
            raise DraftError("features", f"{len(features)} features have {len(pairs)} pairs; at most {MOST_PRODUCTS}")
        for group, (first, second) in enumerate(pairs, start=len(features) + 1):
            questions.append(_Asked(PRODUCT, group, 1, first.name, second.name))
    return questions


def _classes_told(
    questions: Sequence[_Asked], indexed: dict[_Asked, Mechanism[int]], classes: int, *, everything: bool
) -> tuple[float, float]:
    """The information of indexed questions on a class's share, `1 / (n Var)`, n reports answering one question of a
    value; and the number of reports to all questions of values, over n.
    """
    of_group: dict[int, int] = {}
    for one in questions:
        pool = one.group if everything else 0
        of_group[pool] = of_group.get(pool, 0) + one.weight
    shares = {one: one.weight / of_group[one.group if everything else 0] for one in questions}
    values = [shares[one] for one in questions if one.kind in (VALUE, SQUARE)]
    if not values or classes == 1:
        return math.inf, 0.0
    typical = math.fsum(values) / len(values)
    telling = ((one, made) for one, made in indexed.items() if one.kind in (LABEL, PAIR))
    information = math.fsum(shares[one] / share_variance(made, classes) for one, made in telling)
    return information / typical, len(values)


def score_edges(model: Model, bins: int = MOST_BINS) -> tuple[float, ...]:
    """The inner edges of at most ``bins`` bins of the log odds of a model of two classes; 0 is one of them.

    Chosen from the model alone. Records are drawn from its own tables, as many of each class, so that a rare one has
    bins too; their edges are even quantiles of the log odds, the nearest to 0 moved there. Nothing of anybody's data is
    looked at.
    """
    if not 2 <= bins <= MOST_BINS:
        raise ValueError(f"bins must be from 2 to {MOST_BINS}, not {bins}")
    coins = Random(0)  # noqa: S311 - the same model has the same edges; nobody's data is near
    prior = _odds(model.prior[0], model.prior[1])
    drawn = [_drawing(likelihood) for likelihood in model.likelihoods]
    odds = sorted(
        max(-_FURTHEST, min(_FURTHEST, prior + math.fsum(draw(coins, of_class) for draw in drawn)))
        for of_class in (0, 1)
        for _ in range(_RECORDS)
    )
    # Rounded: edges that people can read, and the same ones on every machine's logarithm.
    edges = [round(odds[len(odds) * place // bins], 2) for place in range(1, bins)]
    nearest = min(range(len(edges)), key=lambda place: abs(edges[place]))
    edges[nearest] = 0.0
    return tuple(sorted(set(edges)))


def _drawing(likelihood: Likelihood) -> Callable[[Random, int], float]:
    """A function that draws a value of a class and gives its log odds of the second class."""
    if isinstance(likelihood, DiscreteLikelihood):
        odds = [_odds(*row) for row in likelihood.table]
        shares = list(zip(*likelihood.table, strict=True))
        return lambda coins, of_class: coins.choices(odds, weights=shares[of_class])[0]
    mean, variance, feature = likelihood.mean, likelihood.variance, likelihood.feature

    def draw(coins: Random, of_class: int) -> float:
        x = feature.clip(coins.gauss(mean[of_class], math.sqrt(variance[of_class])))
        first, second = (-0.5 * math.log(v) - (x - m) ** 2 / (2 * v) for m, v in zip(mean, variance, strict=True))
        return second - first

    return draw


def _odds(first: float, second: float) -> float:
    """The log odds of the second, as far as they count."""
    if first == second:
        return 0.0
    if not first or not second:
        return _FURTHEST if second else -_FURTHEST
    return math.log(second / first)


def make_discrete(name: str, domain_size: int, epsilon: Fraction, theta: Fraction | None = None) -> Mechanism[int]:
    """The mechanism ``name`` (``auto``: least variance at frequency 1/d) below d; ``theta`` None takes the best."""
    if name == AUTO:
        candidates = [make_discrete(known, domain_size, epsilon, theta) for known in DISCRETE]
        return min(candidates, key=lambda mechanism: mechanism.noise_variance(1 / domain_size))
    if name == ThresholdingHistogramEncoding.name:
        return ThresholdingHistogramEncoding.make(domain_size, epsilon, theta)
    return DISCRETE[name].make(domain_size, epsilon)


def make_sign(
    classes: int,
    epsilon: Fraction,
    *,
    missing: bool = False,
    among: Sequence[type[PureMechanism]] = (),
) -> PureMechanism:
    """The sign mechanism of least variance on the 2 k cells of (class, bit), 3 k where ``missing`` (taken as rare);
    ``among`` some, or all there are.
    """
    made = (mechanism.make((2 + missing) * classes, epsilon) for mechanism in among or PURE.values())
    return min(made, key=lambda mechanism: contrast_variance(mechanism, classes))


def make_continuous(
    name: str, classes: int, epsilon: Fraction, *, classes_told: float = math.inf, alike: float = 1.0
) -> AnyMechanism:
    """The mechanism for a value with its class: ``laplace``, ``onebit``, ``sign``, or ``auto`` by predicted variance.

    Predicted is n Var of a class's mean, P(class)^2 times, by the delta method, of equal classes whose values and means
    are spread evenly over the bounds: that of the sum and, times the squared mean, that of the share, which the sum is
    divided by. The stochastic bit of ``sign`` adds 2 / (3 k) to the first; its reports tell the class, which helps the
    second.

    ``classes_told`` is what the campaign's other questions tell about a class's share, 1 / (n Var), n being the reports
    to one question like this: infinite where the share needs no estimate, 0 where nothing else tells it. ``alike`` are
    the reports to all questions that get this mechanism, over those to one of them.
    """
    if name == SIGN:
        return make_sign(classes, epsilon)
    if name != AUTO:
        return OF_VALUES[name].make(classes, epsilon)

    sign = make_sign(classes, epsilon)
    told_by_sign = classes_told + (alike / share_variance(sign, classes) if classes > 1 else math.inf)
    of_sign = contrast_variance(sign, classes) + (1 - _SQUARED_MEAN) / classes
    candidates: list[tuple[float, AnyMechanism]] = [(_of_mean(of_sign, told_by_sign), sign)]
    moments = [mechanism.make(classes, epsilon) for mechanism in OF_VALUES.values()]
    candidates += [(_of_mean(made.noise_variance(1 / classes), classes_told), made) for made in moments]
    return min(candidates, key=lambda candidate: candidate[0])[1]


def share_variance(mechanism: Mechanism[int], classes: int) -> float:
    """`n` times the variance of one class's share, told by cells that come in equally many for each class."""
    share = 1 / classes
    return mechanism.sum_variance(mechanism.domain_size // classes, share) + share * (1 - share)


def contrast_variance(mechanism: Mechanism[int], classes: int) -> float:
    """`n` times the noise variance of a class's sum of signs, half of its cells having a minus, at equal classes."""
    cells = mechanism.domain_size // classes
    # The last of an odd number of cells of a class, where there is no value, has no sign.
    return mechanism.signs_variance(cells - cells % 2, 1 / classes)


def _of_mean(of_sum: float, information: float) -> float:
    """The variance that :func:`make_continuous` compares."""
    return of_sum + (_SQUARED_MEAN / information if information else math.inf)
