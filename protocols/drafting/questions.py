"""The questions of a draft: what is asked, with which mechanism and which share of the budget."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Final

from protocols.document.privacy import Privacy
from protocols.document.questions import (
    INDEX,
    LABEL,
    MARGINAL,
    MOMENT,
    MOST_PRODUCTS,
    PAIR,
    PRODUCT,
    SCORE,
    SIGN,
    SQUARE,
    TRIPLE,
    VALUE,
    XOR,
    Question,
    is_gaussian,
)
from protocols.document.schema import Feature, Label
from protocols.drafting.asked import Asked
from protocols.drafting.choice import (
    AUTO,
    make_continuous,
    make_discrete,
    make_sign,
    make_signs,
    share_variance,
    signs_pay,
    triple_pays,
)
from protocols.drafting.joining import as_signs, as_triples, check_joined, may_join
from protocols.errors import DraftError
from protocols.exact.rationals import divide_down, exact_epsilon
from protocols.mechanisms import DISCRETE, AnyMechanism, Mechanism

LEAST_EPSILON: Final = 1e-6
"""The least epsilon of one question that a draft may ask for."""

MOST_XOR_EPSILON: Final = 1.25
"""Above it a cell of the pair tells more of how value and class go together than three bits of different devices."""

_XOR_WEIGHTS: Final = {XOR: 76, MARGINAL: 19}
_LABEL_WEIGHT: Final = 5
_WHOLE: Final = 100
"""Of 100 devices that draw a feature 5 answer the class alone where bits are asked, which do not tell it: of the others
.8 answer the xor and .2 the value. For a label that is left open as many do so, whatever is asked.
"""


def compile_questions(
    label: Label, features: Sequence[Feature], privacy: Privacy, *, moments: bool = False
) -> tuple[Question, ...]:
    """The questions of a campaign, the label's first, with mechanisms chosen and budget split as ``privacy`` says.

    ``moments`` asks what fitting a projection takes: every feature's value with the class, and the product of every
    pair of features (a feature with itself: its square). Raises DraftError.
    """
    classes = len(label.classes)
    groups = len(features) + (label.weight != 0)
    epsilon = divide_down(privacy.epsilon, groups) if privacy.answers == "all" else privacy.epsilon
    _check_epsilon(epsilon)
    exact = exact_epsilon(epsilon)
    _check_complete([one for one in features if moments or is_gaussian(one)], privacy)
    theta = None if privacy.theta is None else Fraction(repr(float(privacy.theta)))
    split = set() if moments else {feature.name for feature in features if splits(label, feature, privacy)}
    seldom = not moments and asks_label_seldom(label, features, privacy)
    asked = _all_asked(label, features, split, seldom=seldom, moments=moments)
    joins = not moments and may_join(privacy, epsilon)
    if joins and privacy.answers == "one":
        pair, triple = (make_discrete(privacy.discrete, cells * classes, exact, theta) for cells in (2, 4))
        if privacy.joint or (privacy.discrete == AUTO and triple_pays(triple, pair, classes)):
            asked = as_triples(asked, 2 * classes)
    indexed = {one: make_discrete(privacy.discrete, one.cells, exact, theta) for one in asked if one.cells}
    told, alike = _classes_told(asked, indexed, classes, everything=privacy.answers == "all")
    incomplete = {feature.name for feature in features if feature.missing}
    of_values: dict[tuple[bool, bool], AnyMechanism] = {
        (False, False): make_continuous(privacy.continuous, classes, exact, classes_told=told, alike=alike),
        (True, False): make_continuous(privacy.continuous, 1, exact),
        (False, True): make_sign(classes, exact, missing=True),
        (True, True): make_sign(1, exact, missing=True),
    }
    for missing in (False, True):
        numbers = {one.feature for one in asked if one.kind == SQUARE and (one.feature in incomplete) == missing}
        if not (joins and numbers):
            continue
        against, auto = of_values[False, missing], privacy.continuous == AUTO
        pays = auto and signs_pay(against, classes, exact, classes_told=told, alike=alike, missing=missing)
        if privacy.joint or pays:
            of_values[False, missing] = make_signs(classes, exact, missing=missing)
            asked = as_signs(asked, numbers)
    if privacy.joint:
        check_joined(asked, features, everything=privacy.answers == "all")
    questions = []
    for index, one in enumerate(asked):
        shape = one.kind == PRODUCT, not incomplete.isdisjoint((one.feature, one.other))
        mechanism: AnyMechanism = indexed.get(one, of_values[shape])
        encoding = INDEX if one in indexed else SIGN if mechanism.name in DISCRETE else MOMENT
        questions.append(
            Question(index, one.kind, one.feature, one.other, one.group, encoding, mechanism, epsilon, one.weight)
        )
    if not moments and all(question.encoding == MOMENT for question in questions):
        raise DraftError(
            "label.weight",
            f"is 0, and no question tells the class: {mechanism.name} asks for values alone, and a model needs the "
            "classes' shares. Ask for the label too (1, or leave it out), or for values with continuous: sign",
        )
    return tuple(questions)


def score_questions(candidates: int, privacy: Privacy) -> tuple[Question, ...]:
    """One question for each candidate of an evaluation round, all alike: was it right? One bit by ``de``."""
    exact = exact_epsilon(privacy.epsilon)
    _check_epsilon(privacy.epsilon)
    mechanism = make_discrete("de", 2, exact)
    return tuple(
        Question(place, SCORE, None, None, place, INDEX, mechanism, privacy.epsilon, 1) for place in range(candidates)
    )


def splits(label: Label, feature: Feature, privacy: Privacy) -> bool:
    """Whether ``auto`` asks bits instead of a pair: of two values and two classes, one answer a device, at an epsilon
    where that pays, if the label may be asked alone and nobody refused. Two values: of a feature that may be missing
    there are three things to tell.
    """
    chosen = privacy.xor is not False and privacy.discrete == AUTO and privacy.answers == "one" and label.weight != 0
    binary = len(label.classes) == 2 and not is_gaussian(feature) and feature.cells == 2
    return chosen and binary and privacy.epsilon <= MOST_XOR_EPSILON


def asks_label_seldom(label: Label, features: Sequence[Feature], privacy: Privacy) -> bool:
    """Whether a twentieth of the devices answer the class alone, and not as many as for a feature: the author left it
    open, and every pair tells the class as well, so that more devices there are lost to the features.
    """
    return label.weight is None and privacy.answers == "one" and not any(map(is_gaussian, features))


def _check_complete(features: Sequence[Feature], privacy: Privacy) -> None:
    """Of features whose values are asked for: noisy sums of values have no place for one that is not there."""
    if privacy.continuous in (AUTO, SIGN):
        return
    for feature in features:
        if feature.missing:
            raise DraftError(
                "privacy.continuous",
                f"{privacy.continuous} cannot tell that a value of {feature.name} is missing; take sign or auto, or "
                'declare "missing": false for every continuous feature without bins',
            )


def _check_epsilon(epsilon: float) -> None:
    if epsilon < LEAST_EPSILON:
        raise DraftError(
            "privacy.epsilon",
            f"leaves {epsilon:g} for a question; below {LEAST_EPSILON:g} nothing can be learned",
        )


def _all_asked(
    label: Label, features: Sequence[Feature], split: Collection[str], *, seldom: bool, moments: bool
) -> list[Asked]:
    """What is asked, in the order of the document; of the features named in ``split`` two bits. ``seldom``: see
    :func:`asks_label_seldom`.
    """
    classes, whole = len(label.classes), _WHOLE if split or seldom else 1
    own = 1 if label.weight is None else label.weight
    alone = _LABEL_WEIGHT * sum(feature.weight for feature in features) if seldom else whole * own
    alone += _LABEL_WEIGHT * sum(feature.weight for feature in features if feature.name in split)
    asked = [Asked(LABEL, 0, alone, cells=classes)] if alone else []
    for group, feature in enumerate(features, start=1):
        weight = (whole - _LABEL_WEIGHT if seldom else whole) * feature.weight
        if feature.name in split:
            asked += [
                Asked(kind, group, share * feature.weight, feature.name, cells=2)
                for kind, share in _XOR_WEIGHTS.items()
            ]
            continue
        if moments or is_gaussian(feature):
            kinds = (VALUE,) if moments else (VALUE, SQUARE)
            asked += [Asked(kind, group, weight, feature.name) for kind in kinds]
        else:
            asked.append(Asked(PAIR, group, weight, feature.name, cells=feature.cells * classes))
    if moments:
        pairs = list(combinations_with_replacement(features, 2))
        if len(pairs) > MOST_PRODUCTS:
            raise DraftError("features", f"{len(features)} features have {len(pairs)} pairs; at most {MOST_PRODUCTS}")
        for group, (first, second) in enumerate(pairs, start=len(features) + 1):
            asked.append(Asked(PRODUCT, group, 1, first.name, second.name))
    return asked


def _classes_told(
    asked: Sequence[Asked], indexed: dict[Asked, Mechanism[int]], classes: int, *, everything: bool
) -> tuple[float, float]:
    """What the indexed questions tell about a class's share, 1 / (n Var) with n the reports to one question of a value;
    and the reports to all questions of values, over those to one.
    """
    of_group: dict[int, int] = {}
    for one in asked:
        pool = one.group if everything else 0
        of_group[pool] = of_group.get(pool, 0) + one.weight
    shares = {one: one.weight / of_group[one.group if everything else 0] for one in asked}
    values = [shares[one] for one in asked if one.kind in (VALUE, SQUARE)]
    if not values:
        return math.inf, 0.0
    typical = math.fsum(values) / len(values)
    telling = ((one, made) for one, made in indexed.items() if one.kind in (LABEL, PAIR, TRIPLE))
    told = math.fsum(shares[one] / share_variance(made, classes) for one, made in telling)
    return told / typical, len(values)
