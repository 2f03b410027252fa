"""The time of an answer: whether it takes longer for some people than for others.

People are asked one at a time, in an order that is drawn by lot, so that load, warming up and whatever else makes a
machine slow at some moment comes to everybody alike. Take the times that answers would have had if all people were
alike, and count those above c: of them a share of a group is as many as the lot dealt to it, a binomial count. A sound
client's answers may differ a little, because a record is longer or a value is found later; so a group is compared with
the others at a *tolerance*: its answers above c + tolerance against theirs above c. Where no answer of the group is
later than it would have been by more than the tolerance, and none of the others earlier than it would have been, that
can only make the first count smaller and the second one larger. Half of the answers choose group and c, the other half
tests them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from ldp_aggregator.audit.asking.black_box import Person, Stopwatch, UnreadableRecord
from ldp_aggregator.audit.asking.features import feature_of
from ldp_aggregator.audit.asking.observations import Flags, Numbers
from ldp_aggregator.audit.asking.people import Document, key_of

ROUNDS: Final = 8000
PATIENCE: Final = 12.0
"""Seconds that are spent on answers one at a time, at the most."""

_PEOPLE: Final = 32
_LEAST: Final = 50e-6
_SHARE: Final = 0.5
"""The tolerance in seconds, and as a share of the time that a tenth of all answers stays below."""

_CUTS: Final = np.array([0.02, 0.05, *np.arange(0.1, 0.95, 0.1), 0.95, 0.98, 0.99, 0.995])
"""Quantiles of the times that choose, at which the others are cut."""

_CHOSEN: Final = 8

Seconds = NDArray[np.float64]


@dataclass(frozen=True)
class Times:
    """``seconds`` of answers one after the other, shape (n,), and the number of ``who`` was asked, shape (n,)."""

    people: tuple[Person, ...]
    who: Numbers
    seconds: Seconds

    @property
    def tolerance(self) -> float:
        """Seconds by which answers may differ."""
        return max(_LEAST, _SHARE * float(np.quantile(self.seconds[0::2], 0.1)))


def ask_times(document: str, stopwatch: Stopwatch, people: Sequence[Person], rng: np.random.Generator) -> Times:
    """Ask people with a declared value for everything, by lot."""
    value: Document = json.loads(document)
    plain = [person for person in people if _is_plain(value, person)]
    chosen = tuple(plain[: _PEOPLE // 2] + plain[_PEOPLE // 2 :][-(_PEOPLE // 2) :])
    who = rng.integers(0, len(chosen), ROUNDS)
    seconds = stopwatch(document, [chosen[number] for number in who], PATIENCE)
    return Times(chosen, who[: len(seconds)], np.array(seconds))


def _is_plain(value: Document, person: Person) -> bool:
    """True where nothing is missing or odd: what a client does then may well take another time."""
    if isinstance(person.record, UnreadableRecord) or len(person.record) != len(value["features"]):
        return False
    features = map(feature_of, value["features"])
    return all(feature.cell_of(person.record.get(feature.name)) is not None for feature in features)


def slow_answers(times: Times, alpha: float) -> str | None:
    """A finding about answer times, or None; wrong with probability at most ``alpha`` below the tolerance."""
    if min(len(times.seconds), len(times.people)) < 2:
        return None
    names, groups = (np.array(of) for of in zip(*_groups(times.people), strict=True))
    cuts = np.quantile(times.seconds[0::2], _CUTS)
    chances, tested = (_chances(_halved(times, start), groups, cuts, times.tolerance) for start in (0, 1))
    for chosen in np.argsort(chances, axis=None, kind="stable")[:_CHOSEN]:
        if tested.flat[chosen] <= alpha / _CHOSEN:
            number, place = divmod(int(chosen), len(cuts))
            tests, group, cut = _halved(times, 1), groups[number], cuts[place]
            late, others = (int(of[number, place]) for of in _late(tests, groups, cuts, times.tolerance))
            return (
                f"{late} of {int(group[tests.who].sum())} answers of {names[number]} took more than "
                f"{1e6 * (cut + times.tolerance):.0f} microseconds, and {others} of "
                f"{int((~group[tests.who]).sum())} of the others' more than {1e6 * cut:.0f}"
            )
    return None


def least_delay(times: Times, alpha: float) -> float | None:
    """The least delay, in seconds, that is found if one person's every answer has it, tried on real times; or None."""
    if not len(times.seconds):
        return None
    first = np.arange(len(times.people)) == 0
    cuts = np.quantile(times.seconds[0::2], _CUTS)
    tested = _halved(times, 1)
    for delay in times.tolerance * np.geomspace(1, 1000, 40):
        later = Times(times.people, tested.who, tested.seconds + delay * first[tested.who])
        if (_chances(later, first[None], cuts, times.tolerance) <= alpha / _CHOSEN).any():
            return float(delay)
    return None


def _halved(times: Times, start: int) -> Times:
    return Times(times.people, times.who[start::2], times.seconds[start::2])


def _groups(people: Sequence[Person]) -> Iterator[tuple[str, Flags]]:
    """List the groups to compare with all others: everybody, every class, and who is not of them."""
    names = {f"class {person.label}" for person in people}
    groups = {name: np.array([f"class {person.label}" == name for person in people]) for name in sorted(names)}
    groups |= {key_of(person): np.arange(len(people)) == number for number, person in enumerate(people)}
    for name, group in groups.items():
        if not group.all():
            yield name, group
            yield f"all but {name}", ~group


def _late(times: Times, groups: Flags, cuts: Seconds, tolerance: float) -> tuple[Numbers, Numbers]:
    """Late answers of groups, shape (groups, people), and of the others above every cut; shape (groups, cuts)."""

    def above(limit: float) -> Numbers:
        return np.bincount(times.who[times.seconds > limit], minlength=len(times.people))

    later, late = (np.stack([above(cut + more) for cut in cuts], axis=1) for more in (tolerance, 0.0))
    return groups.astype(np.int64) @ later, (~groups).astype(np.int64) @ late


def _chances(times: Times, groups: Flags, cuts: Seconds, tolerance: float) -> Seconds:
    """The probabilities that a lot deals a group so many of all that are late, at the least."""
    late, others = _late(times, groups, cuts, tolerance)
    return np.asarray(binom.sf(late - 1, late + others, groups.mean(axis=1, keepdims=True)))
