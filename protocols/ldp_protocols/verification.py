"""Checking a campaign's promise without trusting who compiled it: worst-case likelihood ratios, in rational numbers.

What a device is charged is :attr:`ldp_protocols.Campaign.loss`; this is the check beside it, question by question.

For every question, the largest ratio P(report | one record) / P(report | another record) over all pairs of records and
all reports, compared with exp(epsilon) by interval arithmetic. Each mechanism proves its closed form in the docstring
of its ``worst_case``; ``ldp-aggregator verify`` finds the same ratios output by output.

Why the mechanism decides alone. The question is drawn before the record is looked at, so its probability cancels in
every ratio. The item may be random given the record (a missing value, a stochastic bit): then the law of a report is a
mixture of the laws of items, and a ratio of mixtures never exceeds the largest ratio of their members. With
``answers: "all"`` the answers of one device are independent given its record, so that the ratios multiply.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

from ldp_protocols.campaign import Campaign
from ldp_protocols.document.questions import Question
from ldp_protocols.exact import exact_epsilon, float_up
from ldp_protocols.mechanisms import AnyMechanism, WorstCase

CLOSED_FORM: Final = "closed form"

NEGLIGIBLE_GAP: Final = Fraction(1, 10**9)
"""A loss this near to its epsilon wastes nothing worth a remark."""


@dataclass(frozen=True)
class QuestionCheck:
    """A question's promise, and its cost at worst."""

    question: Question
    worst: WorstCase
    method: str

    @property
    def epsilon(self) -> Fraction:
        """The document's promise for this question."""
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
        """The reason why the loss stays clearly below epsilon, None where it does not."""
        if self.gap < NEGLIGIBLE_GAP:
            return None
        return self.question.mechanism.waste


@dataclass(frozen=True)
class Verification:
    """The checks of all questions and of their sum."""

    campaign: Campaign
    questions: tuple[QuestionCheck, ...]

    @property
    def crowd_holds(self) -> bool:
        """False where the mixed reports of the campaign's crowd may reveal more than it promises."""
        crowd = self.campaign.privacy.crowd
        if crowd is None:
            return True
        from ldp_protocols.blanket import blanket_of, keeps

        blanket = blanket_of(self.campaign.questions)
        return blanket is not None and keeps(blanket, crowd)

    @property
    def loss(self) -> Fraction:
        """The loss of one device in all: its worst question, or with ``answers: "all"`` the sum over the groups."""
        losses = [check.worst.loss for check in self.questions]
        return sum((max(losses[one.index] for one in pool) for pool in self.campaign.pools), Fraction(0))

    @property
    def holds(self) -> bool:
        """True where every question and the whole campaign keep their promise."""
        every = all(check.holds for check in self.questions) and self.crowd_holds
        return every and self.loss <= exact_epsilon(self.campaign.privacy.epsilon)

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready document; losses are rounded up, gaps to the nearest double."""
        total, crowd = exact_epsilon(self.campaign.privacy.epsilon), self.campaign.privacy.crowd
        return {
            "campaign": self.campaign.id,
            "holds": self.holds,
            "epsilon": self.campaign.privacy.epsilon,
            "realised_epsilon": float_up(self.loss),
            "gap": float(total - self.loss),
            "answers": self.campaign.privacy.answers,
            **({"crowd": crowd.to_json() | {"holds": self.crowd_holds}} if crowd else {}),
            "questions": [
                {
                    "question": check.question.index,
                    "kind": check.question.kind,
                    "feature": check.question.feature,
                    "mechanism": check.question.mechanism.name,
                    "domain_size": check.question.domain_size,
                    "method": check.method,
                    "holds": check.holds,
                    "epsilon": check.question.epsilon,
                    "realised_epsilon": float_up(check.worst.loss),
                    "gap": float(check.gap),
                    "note": check.note,
                }
                for check in self.questions
            ],
        }


@lru_cache(maxsize=1024)
def closed_form(mechanism: AnyMechanism) -> tuple[WorstCase, str]:
    """Many questions of a campaign have one mechanism between them."""
    return mechanism.worst_case(), CLOSED_FORM


def verify(campaign: Campaign, prove: Callable[[AnyMechanism], tuple[WorstCase, str]] = closed_form) -> Verification:
    """Check every question of a campaign, as a device does; ``prove`` gives the worst case and how it was found."""
    return Verification(campaign, tuple(QuestionCheck(q, *prove(q.mechanism)) for q in campaign.questions))
