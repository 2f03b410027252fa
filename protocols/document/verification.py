"""Checking a campaign's promise without trusting who compiled it: worst-case likelihood ratios, in rational numbers.

For every question, the largest ratio P(report | one record) / P(report | another record) over all pairs of records and
all reports, compared with exp(epsilon) by interval arithmetic. It shares no formula with the mechanisms' own ``loss``:
the closed form of each mechanism is proved in the docstring of its function below. :mod:`protocols.proofs.enumeration`
finds the same ratios output by output, where there are not too many; a device has no time for that.

Why the mechanism decides alone. The question is drawn before the record is looked at, so its probability cancels in
every ratio. The item may be random given the record (a missing value, a stochastic bit): then the law of a report is a
mixture of the laws of items, and a ratio of mixtures never exceeds the largest ratio of their members. With
``answers: "all"`` the answers of one device are independent given its record, so that the ratios multiply.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, singledispatch
from typing import Any, Final

from protocols.document.campaign import Campaign
from protocols.document.questions import Question
from protocols.exact.rationals import exact_epsilon, exp_bounds, float_up, log_upper
from protocols.mechanisms import AnyMechanism, DirectEncoding, NoisyVector, OneBit, SubsetSelection, UnaryEncoding

CLOSED_FORM: Final = "closed form"

NEGLIGIBLE_GAP: Final = Fraction(1, 10**9)
"""A loss this near to its epsilon wastes nothing worth a remark."""

_KNOWN_AT_ONCE: Final = 1024
_LARGEST_EXPONENT: Final = 64
"""Up to here ``exp_bounds`` bounds exp from both sides; beyond, logarithms are compared."""

_THRESHOLD_NOTE: Final = "a threshold tells less than the noise behind it would allow; oue spends what it leaves"
_GRID_NOTE: Final = "the integers of the document allow no loss nearer to epsilon, or its author chose smaller ones"


@dataclass(frozen=True)
class WorstCase:
    """The largest likelihood ratio, ``ratio * exp(exponent)``: one of the two factors is always trivial."""

    ratio: Fraction
    exponent: Fraction
    method: str

    @property
    def loss(self) -> Fraction:
        """An upper bound of its logarithm, at most 1e-50 above it."""
        return self.exponent + log_upper(self.ratio)

    def stays_within(self, epsilon: Fraction) -> bool:
        """Whether the ratio is certainly at most exp(epsilon)."""
        rest = epsilon - self.exponent
        if abs(rest) > _LARGEST_EXPONENT:
            return log_upper(self.ratio) <= rest
        return self.ratio <= (exp_bounds(rest)[0] if rest else 1)


@dataclass(frozen=True)
class QuestionCheck:
    """What a question promises and what it costs at worst."""

    question: Question
    worst: WorstCase

    @property
    def epsilon(self) -> Fraction:
        """What the document promises for this question."""
        return exact_epsilon(self.question.epsilon)

    @property
    def holds(self) -> bool:
        return self.worst.stays_within(self.epsilon)

    @property
    def gap(self) -> Fraction:
        """Epsilon minus the loss."""
        return self.epsilon - self.worst.loss

    @property
    def note(self) -> str | None:
        """Why the loss stays clearly below epsilon, None where it does not."""
        if self.gap < NEGLIGIBLE_GAP:
            return None
        return _THRESHOLD_NOTE if self.question.mechanism.name == "the" else _GRID_NOTE


@dataclass(frozen=True)
class Verification:
    """The checks of all questions and of their sum."""

    campaign: Campaign
    questions: tuple[QuestionCheck, ...]

    @property
    def loss(self) -> Fraction:
        """What one device loses in all: its worst question, or with ``answers: "all"`` the sum over the groups."""
        worst: dict[int, Fraction] = {}
        for check in self.questions:
            group = check.question.group
            worst[group] = max(worst.get(group, Fraction(0)), check.worst.loss)
        return sum(worst.values(), Fraction(0)) if self.campaign.privacy.answers == "all" else max(worst.values())

    @property
    def holds(self) -> bool:
        """Whether every question and the whole campaign keep their promise."""
        return all(check.holds for check in self.questions) and self.loss <= exact_epsilon(
            self.campaign.privacy.epsilon
        )

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready document; losses are rounded up, gaps to the nearest double."""
        total = exact_epsilon(self.campaign.privacy.epsilon)
        return {
            "campaign": self.campaign.id,
            "holds": self.holds,
            "epsilon": self.campaign.privacy.epsilon,
            "realised_epsilon": float_up(self.loss),
            "gap": float(total - self.loss),
            "answers": self.campaign.privacy.answers,
            "questions": [
                {
                    "question": check.question.index,
                    "kind": check.question.kind,
                    "feature": check.question.feature,
                    "mechanism": check.question.mechanism.name,
                    "domain_size": check.question.domain_size,
                    "method": check.worst.method,
                    "holds": check.holds,
                    "epsilon": check.question.epsilon,
                    "realised_epsilon": float_up(check.worst.loss),
                    "gap": float(check.gap),
                    "note": check.note,
                }
                for check in self.questions
            ],
        }


def verify(campaign: Campaign, worst_case: Callable[[AnyMechanism], WorstCase] | None = None) -> Verification:
    """Check every question of a campaign; ``worst_case`` None takes the closed forms, as a device does."""
    prove = _closed_form_once if worst_case is None else worst_case
    return Verification(campaign, tuple(QuestionCheck(q, prove(q.mechanism)) for q in campaign.questions))


@singledispatch
def closed_form(mechanism: object) -> WorstCase:
    """The largest likelihood ratio of a mechanism. Raises TypeError for one that nothing here is proved about."""
    raise TypeError(f"no proof for mechanism {type(mechanism).__name__}")


@lru_cache(maxsize=_KNOWN_AT_ONCE)
def _closed_form_once(mechanism: AnyMechanism) -> WorstCase:
    """Many questions of a campaign have one mechanism between them."""
    return closed_form(mechanism)


def _ratio(value: Fraction) -> WorstCase:
    return WorstCase(max(value, 1 / value), Fraction(0), CLOSED_FORM)


@closed_form.register(DirectEncoding)
def _direct(mechanism: DirectEncoding) -> WorstCase:
    """Of an output y, P(y | x) is p for x = y and (1 - p) / (d - 1) for every other x: two values, one ratio."""
    return _ratio(mechanism.p * (mechanism.domain_size - 1) / (1 - mechanism.p))


@closed_form.register(UnaryEncoding)
def _unary(mechanism: UnaryEncoding) -> WorstCase:
    """The bits are independent, and the laws of two items x and x' differ in bits x and x' only. All other factors
    cancel; the two that are left are largest, each on its own, at bit x set (p / q) and bit x' clear
    ((1 - q) / (1 - p)), which one output has together. p > q, so that both factors are above 1.
    """
    p, q = mechanism.p, mechanism.q
    return _ratio(p / q * ((1 - q) / (1 - p)))


@closed_form.register(SubsetSelection)
def _subset(mechanism: SubsetSelection) -> WorstCase:
    """A subset S of size w has P(S | x) = p / C(d - 1, w - 1) if it contains x, the other members being uniform, and
    (1 - p) / C(d - 1, w) if it does not: two values. C(d - 1, w) / C(d - 1, w - 1) = (d - w) / w.
    """
    d, w, p = mechanism.domain_size, mechanism.subset_size, mechanism.p
    return _ratio(p * (d - w) / ((1 - p) * w))


@closed_form.register(OneBit)
def _one_bit(mechanism: OneBit) -> WorstCase:
    """The cell is drawn uniformly whatever the item is, and cancels. The bit is 1 when a word lies below a threshold
    that rises with the value from 2^64 - P at -1 to P at 1 (rounded down, which keeps the order), P > 2^63. So
    P(bit | item, cell) lies between 1 - p and p for either bit, and reaches both ends at the items (cell, -1) and
    (cell, 1).
    """
    return _ratio(mechanism.p / (1 - mechanism.p))


@closed_form.register(NoisyVector)
def _noisy(mechanism: NoisyVector[Any]) -> WorstCase:
    """A report is clamp(x + Z), Z of independent cells with P(z) proportional to exp(-|z| / t). For a vector y before
    clamping, P(y | x) / P(y | x') = exp(sum over cells of (|y - x'| - |y - x|) / t) <= exp(||x - x'||_1 / t), with
    equality where y is beyond both in every cell. A vector has one cell that is not 0, of at most 2^grid steps, and
    rounding to the grid does not leave that range: ||x - x'||_1 <= 2 * 2^grid, reached by two classes or by the two
    ends. Clamping looks at y alone: the probability of a clamped report is a sum of probabilities of vectors y, and a
    ratio of sums never exceeds the largest ratio of their terms; a report inside the bound keeps its own ratio, so that
    the worst case is attained.
    """
    return WorstCase(Fraction(1), Fraction(2 << mechanism.grid) / mechanism.scale, CLOSED_FORM)
