"""Questions: what a device may be asked, with which mechanism and which share of the budget.

Compiled on the server (:mod:`ldp_protocols.drafting`), interpreted on the device, which needs no policy:
``ldp_client.answering`` says what it answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from ldp_protocols.document.schema import Label
from ldp_protocols.errors import DocumentError
from ldp_protocols.exact import Coins, exact_epsilon
from ldp_protocols.features import MOST_CELLS, Feature
from ldp_protocols.fields import Fields, Refusal
from ldp_protocols.mechanisms import DISCRETE, MOMENTS, PURE, AnyMechanism, Moment, from_parameters

LABEL: Final = "label"
PAIR: Final = "pair"
VALUE: Final = "value"
SQUARE: Final = "square"
PRODUCT: Final = "product"
JOINT: Final = "joint"
RIGHT: Final = "right"
SCORE: Final = "score"

KINDS: Final = (LABEL, PAIR, VALUE, SQUARE, PRODUCT, JOINT, RIGHT, SCORE)

INDEX: Final = "index"
SIGN: Final = "sign"
MOMENT: Final = "moment"

MOST_PRODUCTS: Final = 1 << 13
"""Pairs of features in a moments round, which up to 127 features have."""

MOST_DRAWN: Final = 1 << 30
"""Weight of one question: that of an author, in hundredths where the label is asked seldom, of many features."""

_ENCODED_FOR: Final[Mapping[str, Mapping[str, object]]] = {INDEX: DISCRETE, SIGN: PURE, MOMENT: MOMENTS}
"""The mechanisms that take items of an encoding."""


@dataclass(frozen=True)
class Question:
    """One question of a campaign. ``index`` is its place in the document and on the wire.

    kind
        ``label`` (domain k); ``pair`` of a discrete feature's value and the class (``value * k + class``); ``value`` or
        ``square`` of a Gaussian feature at the class. Without a label there is one class, which leaves the value alone,
        and ``joint``: the values of discrete ``feature`` and ``other`` (``value * cells of other + value of other``).
        In a moments round: ``value``, and the ``product`` of ``feature`` and ``other``, without the class. In an
        evaluation round: ``right``, whether the model says the record's class (domain 2, 1 if it does); ``score``,
        where the model's score of the record lies, and the class (``place * k + class``): its bin with two classes, the
        class that the model says with more.
    encoding
        ``index`` for label, pair, joint, right and score; any other question is asked as ``moment`` (a value at a
        class) or as ``sign`` (``2 * class + bit``, a stochastic bit with the class). Where a value may be missing, a
        pair has one value more, the last, and a sign has three places a class (``3 * class + 2``).
    group
        0 for the label and in an evaluation round, i + 1 for asked feature i, beyond for what names two. A device
        answers at most one of a group.
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
        """The recomputed worst-case loss; see :meth:`ldp_protocols.mechanisms.Mechanism.loss`."""
        return self.mechanism.loss()


def signs_of(question: Question, classes: int) -> int:
    """Places of a ``sign`` question for each class (of a product: in all): 2, and a last one if it may be missing."""
    return question.domain_size // (1 if question.kind == PRODUCT else classes)


def read_question(
    value: Any, index: int, label: Label, features: Sequence[Feature], refuse: Refusal, *, moments: bool, places: int
) -> Question:
    """Read a document's question, checked against its schema; in an evaluation round against the score's ``places``."""
    fields = Fields(value, f"questions[{index}]", refuse)
    kind = fields.choice("kind", KINDS)
    name, other = fields.optional_text("feature"), fields.optional_text("other")
    group = fields.integer("group", least=0, most=len(features) + MOST_PRODUCTS)
    encoding = fields.choice("encoding", (INDEX, SIGN, MOMENT))
    mechanism_name = fields.text("mechanism")
    domain_size = fields.integer("domain_size", least=1, most=MOST_CELLS)
    epsilon = fields.number("epsilon")
    weight = fields.integer("weight", least=1, most=MOST_DRAWN)
    parameters = fields.raw("parameters")
    fields.finish()
    if not isinstance(parameters, dict):
        raise fields.error("parameters", "must be an object")
    if places:
        if kind not in (RIGHT, SCORE) or group != 0 or (name, other) != (None, None):
            raise fields.error("kind", f"an evaluation round asks for {RIGHT} and {SCORE}, in group 0, of no feature")
        size = 2 if kind == RIGHT else places * len(label.classes)
        wanted = size if encoding == INDEX else None
    else:
        named = _subject(kind, group, (name, other), features, fields)
        wanted = _cells(kind, encoding, label, named, moments=moments)
    if wanted is None:
        raise fields.error("domain_size", f"is of nothing: no question of kind {kind} here is encoded as {encoding}")
    if domain_size != wanted:
        raise fields.error("domain_size", f"must be {wanted} for this kind, encoding and feature, not {domain_size}")
    if mechanism_name in {*DISCRETE, *MOMENTS} and mechanism_name not in _ENCODED_FOR[encoding]:
        raise fields.error("mechanism", f"{mechanism_name} does not answer questions encoded as {encoding}")
    mechanism = from_parameters(mechanism_name, domain_size, parameters)
    question = Question(index, kind, name, other, group, encoding, mechanism, epsilon, weight)
    if epsilon <= 0 or question.loss() > exact_epsilon(epsilon):
        raise DocumentError(
            "loss-above-epsilon",
            f"question {index} loses up to {mechanism.realised_epsilon:.6g}, above its epsilon of {epsilon}",
        )
    return question


def _subject(
    kind: str, group: int, names: tuple[str | None, str | None], features: Sequence[Feature], fields: Fields
) -> list[Feature | None]:
    """Features that a question names: none for the label, two for a product, else its group's. Refuses all others."""
    declared: dict[str | None, Feature] = {feature.name: feature for feature in features}
    named = [declared.get(name) for name in names]
    if kind in (PRODUCT, JOINT):
        if None in named:
            key = ("feature", "other")[named.index(None)]
            raise fields.error(key, f"a {kind} question names two asked features")
        if group <= len(features):
            raise fields.error("group", f"{kind} questions come after the features' groups, {len(features)} and below")
        return named
    if group > len(features):
        raise fields.error("group", f"must be at most {len(features)} for a {kind} question, not {group}")
    expected = features[group - 1].name if group else None
    if names != (expected, None):
        subject = f"feature {expected}" if expected else "the label"
        raise fields.error(
            "feature", f"group {group} is {subject}; other is the second feature of a product or a joint"
        )
    return named


def _cells(kind: str, encoding: str, label: Label, named: Sequence[Feature | None], *, moments: bool) -> int | None:
    """Cells of a question of this shape; None for impossible shapes: noisy sums cannot tell that a value is missing."""
    classes, (feature, other) = len(label.classes), named
    if feature is None:
        return classes if label and (kind, encoding) == (LABEL, INDEX) else None
    if kind == JOINT:
        possible = not label and other and not (feature.moments or other.moments)
        return feature.cells * other.cells if possible and other and encoding == INDEX else None
    if moments:
        size = {VALUE: classes, PRODUCT: 1}.get(kind)
    elif feature.moments:
        size = classes if kind in (VALUE, SQUARE) else None
    else:
        return feature.cells * classes if (kind, encoding) == (PAIR, INDEX) else None
    if size is None:
        return None
    missing = feature.missing or (other is not None and other.missing)
    return ({SIGN: 3 * size} if missing else {SIGN: 2 * size, MOMENT: size}).get(encoding)
