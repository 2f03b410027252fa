"""The leaks that an audit could have found with its trials, and those that none can see."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ldp_aggregator.audit.searching.events import Event, guess_bound, loss_bound

UNSEEN: Final = (
    "leaks rarer than the deltas above, and losses between the claim and the loss above",
    "signals that only the holder of a secret can read: ids, noise, ephemeral keys or blinding factors chosen until a "
    "keyed hash of them says something, or made by it",
    "generators other than the usual ones; seeds of more than some 36 bits, or of fewer that leave no trace in ids; "
    "coins that repeat only under conditions that were not met here, or after more devices than one person has here in "
    "one process",
    "reactions to records, campaigns, devices, dates or places that were not asked: values, numbers and records are "
    "drawn anew every time, but three values together, or two of very many, may not have met",
    "time: delays below the one above, delays of few answers, and the moment of a send within a pause",
    "what an app adds to its requests, what TLS and TCP tell, and whatever leaves the device on another way than its "
    "requests; copies of an answer outside the storage",
)

_SIGMA: Final = 1.645
"""Found in 19 of 20 audits at the least."""


@dataclass(frozen=True)
class Floor:
    """The least leaks that the audit finds; ``loss`` is above the claim, in every answer, None if nothing was guessed.

    ``delta_one`` and ``delta_all`` are the least probabilities of an upload that tells everything: of one person's
    uploads, if nobody else sends the like; of everybody's, if it is the truth without noise and noise is never like it
    (None where no mechanism of the document has a truth without noise).
    """

    loss: float | None
    delta_one: float
    delta_all: float | None
    delay: float | None = None

    def sentences(self) -> tuple[str, ...]:
        """The floor in words."""
        return (
            "No loss of whole uploads above the claim could be guessed."
            if self.loss is None
            else f"A loss of {self.loss:.4g} in every answer would have been found in 19 of 20 audits.",
            f"What only one person sends was found from a probability (delta) of {self.delta_one:.2g} on.",
            *(
                []
                if self.delta_all is None
                else [f"The truth in the clear, where noise is never like it, from a delta of {self.delta_all:.2g} on."]
            ),
            "Nobody looked at the time that answers take."
            if self.delay is None
            else f"A delay of {1e6 * self.delay:.0f} microseconds in every answer of one person would have been found.",
        )

    def to_json(self) -> dict[str, float | None]:
        return {"loss": self.loss, "delta_one": self.delta_one, "delta_all": self.delta_all, "delay": self.delay}


def floor_of(
    claim: float,
    guesses: Sequence[tuple[Event, float]],
    clear: Sequence[tuple[Event, float]],
    trials: int,
    people: int,
    alpha: float,
    delay: float | None = None,
) -> Floor:
    """The leaks that could have been found among ``people``, with the document's epsilon as ``claim``.

    ``guesses`` about whole uploads, and ``clear`` ones by the truth without noise, have the probability at which their
    bound may be wrong; ``alpha`` is that for an event about one person, ``trials`` are a person's that test what others
    chose, and ``delay`` is what was found out about time.
    """
    losses = [found for event, of in guesses if (found := _least_loss(claim, event, of)) is not None]

    def alone(count: int) -> bool:
        return float(loss_bound(count, trials, 0, trials * max(1, people - 1), alpha)) > claim

    def certain(event: Event, alpha: float) -> Callable[[int], bool]:
        return lambda count: guess_bound(count, 0, alpha, event.people) > claim  # If all guesses are right.

    shares = [_least_share(certain(event, of), event.one_trials) for event, of in clear]
    return Floor(min(losses, default=None), _least_share(alone, trials), min(shares, default=None), delay)


def _least_loss(claim: float, event: Event, alpha: float) -> float | None:
    guesses = event.ones + event.others
    low, high = claim, claim + 20
    if not guesses or not _found(high, claim, guesses, alpha):
        return None
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if _found(middle, claim, guesses, alpha) else (middle, high)
    return high


def _found(loss: float, claim: float, guesses: int, alpha: float) -> bool:
    share = 1 / (1 + math.exp(-loss))
    right = math.floor(guesses * share - _SIGMA * math.sqrt(guesses * share * (1 - share)))
    return guess_bound(right, guesses - right, alpha) > claim


def _least_share(found: Callable[[int], bool], trials: int) -> float:
    """The least share at which 19 of 20 audits see as often as is needed."""
    count = 1
    while count < trials and not found(count):
        count += 1
    return min(1.0, (count + _SIGMA * math.sqrt(count) + _SIGMA**2) / max(trials, 1))
