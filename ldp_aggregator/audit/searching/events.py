"""The events that an audit counts, each with the loss that its counts prove, by Clopper-Pearson bounds.

Two of them. ``loss_bound`` compares an event's frequency under one input with that under the other; the other may be a
crowd in equal parts, because a sum of unequal coins is no wider than one of equal coins (Hoeffding 1956).
``guess_bound`` is about a guesser who sees uploads of k people, each sent by one of them who was drawn by lot, and says
for some of them whose they are: epsilon-LDP leaves no upload with a posterior above exp(epsilon) / (exp(epsilon) + k -
1), so that every guess, whatever rule it follows, is right with probability at most that (Kairouz, Oh, Viswanath 2015;
as an audit Steinke, Nasr, Jagielski 2023). It pays for one interval where the other pays for two, and sees all people
at once, but it only sees their average.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta

from ldp_aggregator.audit.asking.black_box import Person
from ldp_aggregator.audit.asking.people import key_of

CONFIDENCE = 0.999
"""The probability that no bound of an audit is wrong."""

_RESERVE = 4.0
"""Standard deviations of the largest number of uploads that a lot asks one person for, which are set aside."""


def fair_rounds(trials: int, rng: np.random.Generator, people: int = 2) -> tuple[int, ...] | None:
    """Count how many uploads of every person take part in a guesser's rounds, as a lot among ``people`` would have it.

    ``trials`` uploads of each are there. Some are set aside, so that the lot seldom asks for more than that (with
    probability 6e-5 for two, with 0.01 for a hundred); where it does there are no rounds, which makes no bound wrong.
    """
    rounds = people * (trials - math.ceil(_RESERVE * math.sqrt(trials * (1 - 1 / people))))
    if rounds <= 0:
        return None
    if people == 2:
        first = int(rng.binomial(rounds, 0.5))
        drawn = (first, rounds - first)
    else:
        drawn = tuple(rng.multinomial(rounds, np.full(people, 1 / people)).tolist())
    return drawn if max(drawn) <= trials else None


WHOLE: Final = "upload"
BLOCK: Final = "answer"
SIDE: Final = "beside the answer"
COMPANY: Final = "before the answer"
ALONE: Final = "upload of a device alone"


@dataclass(frozen=True)
class Event:
    """One event under two people: how often it was seen, and the loss that this proves.

    ``scope`` is what is compared with which ``claim``: whole uploads with the document's epsilon, the answer to one
    question with that question's epsilon, or what stands beside the answer (ids, header, which questions, how many
    uploads) with 0, because it must have one law whoever the person is; and with 0 too what one person sends in two
    processes, because who was asked before must not matter; and what a device sends that is alone in its process, with
    the document's epsilon again. It is seen of ``one`` and ``other`` (None: everybody else, in equal parts); ``ones``
    and ``others`` are counts, of guesses (``guessed``, in rounds among ``people``) the right and the wrong ones.
    """

    name: str
    scope: str
    claim: float
    questions: tuple[int, ...]
    one: Person | None
    other: Person | None
    ones: int
    one_trials: int
    others: int
    other_trials: int
    guessed: bool = False
    people: int = 2
    bound: float = -math.inf

    def bounded(self, alpha: float) -> Event:
        """The event with its bound, wrong with probability at most ``alpha``."""
        if self.guessed:
            return replace(self, bound=guess_bound(self.ones, self.others, alpha, self.people))
        bound = loss_bound(self.ones, self.one_trials, self.others, self.other_trials, alpha)
        return replace(self, bound=float(bound))

    @property
    def excessive(self) -> bool:
        return self.bound > self.claim

    def __str__(self) -> str:
        if self.guessed:
            seen = (
                f"{self.ones} right and {self.others} wrong in {self.one_trials} rounds among {self.people} people"
                f"{'' if self.one is None else f', the first of them {key_of(self.one)}'}"
            )
        else:
            seen = (
                f"seen {self.ones} times in {self.one_trials} under {_who(self.one)} and {self.others} times in "
                f"{self.other_trials} under {_who(self.other)}"
            )
        return f"{self.name} of questions {list(self.questions)}: {seen}"

    def to_json(self) -> dict[str, Any]:
        return {
            "event": self.name,
            "scope": self.scope,
            "claim": self.claim,
            "questions": list(self.questions),
            "one": None if self.one is None else self.one.to_json(),
            "other": None if self.other is None else self.other.to_json(),
            "seen": [self.ones, self.others],
            "trials": [self.one_trials, self.other_trials],
            "guesses_among": self.people if self.guessed else None,
            "bound": self.bound if math.isfinite(self.bound) else None,
        }


def _who(person: Person | None) -> str:
    return "others" if person is None else key_of(person)


def loss_bound(ones: ArrayLike, one_trials: int, others: ArrayLike, other_trials: int, alpha: float) -> NDArray[Any]:
    """Lower bounds of ln(P(event | one) / P(event | other)), each wrong with probability at most ``alpha``.

    ``ones`` and ``others`` count the event among independent trials under either input; half of ``alpha`` goes to
    the lower bound of the first probability, half to the upper bound of the second.
    """
    ones, others = np.asarray(ones), np.asarray(others)
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(ones > 0, beta.ppf(alpha / 2, ones, one_trials - ones + 1), 0.0)
        high = np.where(others < other_trials, beta.ppf(1 - alpha / 2, others + 1, other_trials - others), 1.0)
        bound: NDArray[Any] = np.log(low) - np.log(high)
    return bound


def share_bound(count: int, trials: int, alpha: float) -> float:
    """A lower bound of an event's probability, wrong with probability at most ``alpha``."""
    return float(beta.ppf(alpha, count, trials - count + 1)) if count else 0.0


def guess_bound(right: int, wrong: int, alpha: float, people: int = 2) -> float:
    """Lower bound of the loss from independent guesses among ``people``; wrong with probability at most ``alpha``."""
    if not right:
        return -math.inf
    least = share_bound(right, right + wrong, alpha)
    return math.log(least) - math.log1p(-least) + math.log(people - 1)
