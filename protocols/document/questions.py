"""Questions: what a device may be asked, with which mechanism and which share of the budget.

Compiled on the server, interpreted on the device, which needs no policy: ``protocols.encoding`` says what it answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any, Final

from protocols.document.schema import (
    MOST_CELLS,
    MOST_WEIGHT,
    ContinuousFeature,
    Feature,
    Label,
    Privacy,
)
from protocols.errors import DocumentError, DraftError
from protocols.exact.coins import Coins
from protocols.exact.rationals import divide_down, exact_epsilon
from protocols.fields import Fields, Refusal
from protocols.mechanisms import (
    DISCRETE,
    MOMENTS,
    PURE,
    AnyMechanism,
    Moment,
    from_parameters,
    make_continuous,
    make_discrete,
)

LABEL: Final = "label"
PAIR: Final = "pair"
VALUE: Final = "value"
SQUARE: Final = "square"
PRODUCT: Final = "product"

INDEX: Final = "index"
SIGN: Final = "sign"
MOMENT: Final = "moment"

MOST_PRODUCTS: Final = 1 << 13
"""Pairs of features in a moments round, which up to 127 features have."""

LEAST_EPSILON: Final = 1e-6
"""The least epsilon of one question that a draft may ask for."""

_ENCODED_FOR: Final[Mapping[str, Mapping[str, object]]] = {INDEX: DISCRETE, SIGN: PURE, MOMENT: MOMENTS}
"""The mechanisms that take items of an encoding."""

_KNOWN: Final = frozenset((*DISCRETE, *MOMENTS))


@dataclass(frozen=True)
class Question:
    """One question of a campaign. ``index`` is its place in the document and on the wire.

    kind
        ``label`` (domain k), ``pair`` of a discrete feature's value and the class (``value * k + class``), ``value`` or
        ``square`` of a Gaussian feature at the class. In a moments round: ``value``, and the ``product`` of ``feature``
        and ``other``, without the class.
    encoding
        ``index`` for label and pair; any other question is asked as ``moment`` (a value at a class) or as ``sign``
        (``2 * class + bit``, a stochastic bit with the class).
    group
        0 for the label, i + 1 for asked feature i, beyond for products; a device answers at most one of a group.
    """

    index: int
    kind: str
    feature: str | None
    other: str | None
    group: int
    encoding: str
    mechanism: AnyMechanism
    epsilon: float
    weight: int

    @property
    def domain_size(self) -> int:
        """Cells of the mechanism."""
        return self.mechanism.domain_size

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "feature": self.feature,
            **({"other": self.other} if self.other is not None else {}),
            "group": self.group,
            "encoding": self.encoding,
            "mechanism": self.mechanism.name,
            "domain_size": self.domain_size,
            "epsilon": self.epsilon,
            "weight": self.weight,
            "parameters": self.mechanism.parameters(),
        }

    def perturb(self, item: int | Moment, coins: Coins) -> bytes:
        """The payload for an item of this question's encoding."""
        mechanism: Any = self.mechanism
        payload: bytes = mechanism.perturb(item, coins)
        return payload

    def loss(self) -> Fraction:
        """The recomputed worst-case loss; see :meth:`protocols.mechanisms.Mechanism.loss`."""
        return self.mechanism.loss()


def compile_questions(
    label: Label, features: Sequence[Feature], privacy: Privacy, *, moments: bool = False
) -> tuple[Question, ...]:
    """The questions of a campaign, the label's first, with mechanisms chosen and budget split as ``privacy`` says.

    ``moments`` asks what fitting a projection takes: every feature's value with the class, and the product of every
    pair of features (a feature with itself: its square).
    """
    classes = len(label.classes)
    groups = len(features) + (label.weight > 0)
    epsilon = divide_down(privacy.epsilon, groups) if privacy.answers == "all" else privacy.epsilon
    if epsilon < LEAST_EPSILON:
        raise DraftError(
            "privacy.epsilon",
            f"leaves {epsilon:g} for a question; below {LEAST_EPSILON:g} nothing can be learned",
        )
    exact = exact_epsilon(epsilon)
    theta = None if privacy.theta is None else Fraction(repr(float(privacy.theta)))
    questions: list[Question] = []

    def ask(
        kind: str,
        group: int,
        mechanism: AnyMechanism,
        weight: int,
        feature: str | None = None,
        other: str | None = None,
    ) -> None:
        discrete = kind in (LABEL, PAIR)
        encoding = INDEX if discrete else SIGN if mechanism.name in DISCRETE else MOMENT
        questions.append(Question(len(questions), kind, feature, other, group, encoding, mechanism, epsilon, weight))

    if label.weight:
        ask(LABEL, 0, make_discrete(privacy.discrete, classes, exact, theta), label.weight)
    for group, feature in enumerate(features, start=1):
        if moments:
            ask(VALUE, group, make_continuous(privacy.continuous, classes, exact), feature.weight, feature.name)
        elif is_gaussian(feature):
            continuous = make_continuous(privacy.continuous, classes, exact)
            for kind in (VALUE, SQUARE):
                ask(kind, group, continuous, feature.weight, feature.name)
        else:
            pair = make_discrete(privacy.discrete, feature.size * classes, exact, theta)
            ask(PAIR, group, pair, feature.weight, feature.name)
    if moments:
        pairs = list(combinations_with_replacement(features, 2))
        if len(pairs) > MOST_PRODUCTS:
            raise DraftError("features", f"{len(features)} features have {len(pairs)} pairs; at most {MOST_PRODUCTS}")
        product = make_continuous(privacy.continuous, 1, exact)
        for group, (first, second) in enumerate(pairs, start=len(features) + 1):
            ask(PRODUCT, group, product, 1, first.name, second.name)
    return tuple(questions)


def is_gaussian(feature: Feature | None) -> bool:
    """Whether a feature is modelled as Gaussian: continuous, without bins."""
    return isinstance(feature, ContinuousFeature) and feature.bins is None


def read_question(
    value: Any, index: int, label: Label, features: Sequence[Feature], refuse: Refusal, *, moments: bool = False
) -> Question:
    """A question of a document, checked against the schema that stands beside it."""
    fields = Fields(value, f"questions[{index}]", refuse)
    kind = fields.choice("kind", (LABEL, PAIR, VALUE, SQUARE, PRODUCT))
    name, other = fields.optional_text("feature"), fields.optional_text("other")
    group = fields.integer("group", least=0, most=len(features) + MOST_PRODUCTS)
    encoding = fields.choice("encoding", (INDEX, SIGN, MOMENT))
    mechanism_name = fields.text("mechanism")
    domain_size = fields.integer("domain_size", least=1, most=MOST_CELLS)
    epsilon = fields.number("epsilon")
    weight = fields.integer("weight", least=1, most=MOST_WEIGHT)
    parameters = fields.raw("parameters")
    fields.finish()
    if not isinstance(parameters, dict):
        raise fields.error("parameters", "must be an object")
    declared = {feature.name: feature for feature in features}
    named = [None if text is None else declared.get(text) for text in (name, other)]
    _check_subject(kind, group, (name, other), named, features, fields)
    wanted = _cells(kind, encoding, label, named[0], moments=moments)
    if domain_size != wanted:
        raise fields.error(
            "domain_size",
            f"must be {wanted} for this kind, encoding and feature, not {domain_size}",
        )
    if mechanism_name in _KNOWN and mechanism_name not in _ENCODED_FOR[encoding]:
        raise fields.error("mechanism", f"{mechanism_name} does not answer questions encoded as {encoding}")
    mechanism = from_parameters(mechanism_name, domain_size, parameters)
    question = Question(index, kind, name, other, group, encoding, mechanism, epsilon, weight)
    if epsilon <= 0 or question.loss() > exact_epsilon(epsilon):
        raise DocumentError(
            "loss-above-epsilon",
            f"question {index} loses up to {mechanism.realised_epsilon:.6g}, above its epsilon of {epsilon}",
        )
    return question


def _check_subject(
    kind: str,
    group: int,
    names: tuple[str | None, str | None],
    named: Sequence[Feature | None],
    features: Sequence[Feature],
    fields: Fields,
) -> None:
    """A label question has group 0 and names nothing; a product names two features; any other the feature of its
    group.
    """
    if kind == PRODUCT:
        for key, feature in zip(("feature", "other"), named, strict=True):
            if feature is None:
                raise fields.error(key, "a product question names two asked features")
        if group <= len(features):
            raise fields.error("group", f"products come after the features' groups, {len(features)} and below")
        return
    if group > len(features):
        raise fields.error("group", f"must be at most {len(features)} for a {kind} question, not {group}")
    right = features[group - 1].name if group else None
    if names != (right, None):
        subject = f"feature {right}" if right else "the label"
        raise fields.error("feature", f"group {group} is {subject}; other is for product questions")


def _cells(kind: str, encoding: str, label: Label, feature: Feature | None, *, moments: bool) -> int | None:
    """Cells that a question of this shape has; None for a shape that does not exist."""
    classes = len(label.classes)
    if feature is None:
        return classes if (kind, encoding) == (LABEL, INDEX) else None
    if moments:
        size = {VALUE: classes, PRODUCT: 1}.get(kind)
    elif is_gaussian(feature):
        size = classes if kind in (VALUE, SQUARE) else None
    else:
        return feature.size * classes if (kind, encoding) == (PAIR, INDEX) else None
    return None if size is None else {SIGN: 2 * size, MOMENT: size}.get(encoding)
