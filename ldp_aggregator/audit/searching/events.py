"""The events that an audit counts, each with the loss that its counts prove (:mod:`ldp_aggregator.audit.bounds`)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from ldp_aggregator.audit.asking.black_box import Person
from ldp_aggregator.audit.asking.people import key_of
from ldp_aggregator.audit.bounds import guess_bound, loss_bound

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
