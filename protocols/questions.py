"""Questions: what a device may be asked, with which mechanism, and how its record becomes the item to perturb.

Compiled on the server, interpreted on the device: a device needs the rules of this file only, no policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from protocols.coins import WORD_BITS, Coins
from protocols.errors import DocumentError, DraftError
from protocols.exact import divide_down, exact_epsilon
from protocols.fields import Fields, Refusal
from protocols.mechanisms import (
    DISCRETE,
    MOMENTS,
    PURE,
    VALUE_BITS,
    AnyMechanism,
    Moment,
    from_parameters,
    make_continuous,
    make_discrete,
)
from protocols.schema import (
    MOST_CELLS,
    MOST_WEIGHT,
    ContinuousFeature,
    Feature,
    Label,
    Privacy,
    number_of,
)

LABEL: Final = "label"
PAIR: Final = "pair"
VALUE: Final = "value"
SQUARE: Final = "square"

INDEX: Final = "index"
SIGN: Final = "sign"
MOMENT: Final = "moment"

LEAST_EPSILON: Final = 1e-6
"""The least epsilon of one question that a draft may ask for."""

_ENCODED_FOR: Final[Mapping[str, Mapping[str, object]]] = {INDEX: DISCRETE, SIGN: PURE, MOMENT: MOMENTS}
"""The mechanisms that take items of an encoding."""

_ONE: Final = 1 << VALUE_BITS


@dataclass(frozen=True)
class Question:
    """One question of a campaign. ``index`` is its place in the document and on the wire.

    kind
        ``label`` (domain k), ``pair`` of a discrete feature's value and the class (``value * k + class``), ``value`` or
        ``square`` of a Gaussian feature at the class.
    encoding
        ``index`` for label and pair; a Gaussian question is asked as ``moment`` (a value at a class) or as ``sign``
        (``2 * class + bit``, a stochastic bit with the class).
    group
        0 for the label, i + 1 for feature i; a device answers at most one question of a group.
    """

    index: int
    kind: str
    feature: str | None
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


def compile_questions(label: Label, features: Sequence[Feature], privacy: Privacy) -> tuple[Question, ...]:
    """The questions of a campaign, the label's first, with mechanisms chosen and budget split as ``privacy`` says."""
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
    drafts: list[tuple[str, str | None, int, str, AnyMechanism, int]] = []
    if label.weight:
        mechanism = make_discrete(privacy.discrete, classes, exact, theta)
        drafts.append((LABEL, None, 0, INDEX, mechanism, label.weight))
    for group, feature in enumerate(features, start=1):
        if isinstance(feature, ContinuousFeature) and feature.bins is None:
            continuous = make_continuous(privacy.continuous, classes, exact)
            encoding = SIGN if continuous.name in DISCRETE else MOMENT
            drafts += [(kind, feature.name, group, encoding, continuous, feature.weight) for kind in (VALUE, SQUARE)]
        else:
            pair = make_discrete(privacy.discrete, feature.size * classes, exact, theta)
            drafts.append((PAIR, feature.name, group, INDEX, pair, feature.weight))
    return tuple(
        Question(index, kind, name, group, encoding, mechanism, epsilon, weight)
        for index, (kind, name, group, encoding, mechanism, weight) in enumerate(drafts)
    )


def read_question(value: Any, index: int, label: Label, features: Sequence[Feature], refuse: Refusal) -> Question:
    """A question of a document, checked against the schema that stands beside it."""
    fields = Fields(value, f"questions[{index}]", refuse)
    kind = fields.choice("kind", (LABEL, PAIR, VALUE, SQUARE))
    name = fields.optional_text("feature")
    group = fields.integer("group", least=0, most=len(features))
    encoding = fields.choice("encoding", (INDEX, SIGN, MOMENT))
    mechanism_name = fields.text("mechanism")
    domain_size = fields.integer("domain_size", least=2, most=MOST_CELLS)
    epsilon = fields.number("epsilon")
    weight = fields.integer("weight", least=1, most=MOST_WEIGHT)
    parameters = fields.raw("parameters")
    fields.finish()
    if not isinstance(parameters, dict):
        raise fields.error("parameters", "must be an object")
    feature = features[group - 1] if group else None
    if name != (feature.name if feature else None):
        raise fields.error("feature", f"group {group} is {feature.name if feature else 'the label'}, not {name}")
    wanted = _cells(kind, encoding, label, feature)
    if domain_size != wanted:
        raise fields.error(
            "domain_size",
            f"must be {wanted} for this kind, encoding and feature, not {domain_size}",
        )
    mechanism = from_parameters(mechanism_name, domain_size, parameters)
    if mechanism_name not in _ENCODED_FOR[encoding]:
        raise fields.error("mechanism", f"{mechanism_name} does not answer questions encoded as {encoding}")
    question = Question(index, kind, name, group, encoding, mechanism, epsilon, weight)
    if epsilon <= 0 or question.loss() > exact_epsilon(epsilon):
        raise DocumentError(
            "loss-above-epsilon",
            f"question {index} loses up to {mechanism.realised_epsilon:.6g}, above its epsilon of {epsilon}",
        )
    return question


def encode(
    question: Question,
    feature: Feature | None,
    value: object,
    class_index: int,
    classes: int,
    coins: Coins,
) -> int | Moment:
    """The item that answers ``question`` for a record whose feature has ``value`` (ignored for the label question).

    A missing or undeclared value is replaced by a uniformly random one (or by ``missing`` where the feature declares
    it): it never changes which question is answered.
    """
    if feature is None:
        return class_index
    if question.kind == PAIR:
        index = feature.index_of(value)
        return (coins.below(feature.size) if index is None else index) * classes + class_index
    if not isinstance(feature, ContinuousFeature):
        raise AssertionError("read_question gives moment questions to continuous features only")
    fixed = fixed_point(feature, value, question.kind, coins)
    if question.encoding == MOMENT:
        return Moment(class_index, fixed)
    bit = coins.bernoulli((fixed + _ONE) << (WORD_BITS - VALUE_BITS - 1))
    return 2 * class_index + bit


def fixed_point(feature: ContinuousFeature, value: object, kind: str, coins: Coins) -> int:
    """The asked quantity in [-1, 1], in units of 2**-52.

    t = 2 (x - low) / (high - low) - 1 after clipping, in double arithmetic; the square is asked as 2 t^2 - 1, which
    uses the whole range. A missing x is a uniformly random t.
    """
    number = number_of(value)
    t = (coins.below(2 * _ONE + 1) - _ONE) / _ONE if number is None else feature.scaled(number)
    return int((t if kind == VALUE else 2 * (t * t) - 1) * _ONE)


def _cells(kind: str, encoding: str, label: Label, feature: Feature | None) -> int | None:
    """Cells that a question of this shape has; None for a shape that does not exist."""
    classes = len(label.classes)
    gaussian = isinstance(feature, ContinuousFeature) and feature.bins is None
    if feature is None:
        return classes if (kind, encoding) == (LABEL, INDEX) else None
    if gaussian and kind in (VALUE, SQUARE):
        return {SIGN: 2 * classes, MOMENT: classes}.get(encoding)
    if not gaussian and (kind, encoding) == (PAIR, INDEX):
        return feature.size * classes
    return None
