"""Guesses of the sender of an upload, by what the mechanisms' publications say is most telling.

Guesses of many pairs of people count together: every one is right with a probability that the claim bounds. Where an
upload has several answers, every question is guessed alone, against its own share, and all of them together by the sum
of their votes, each with the weight of its epsilon.

Guesses among many people ask whose is what only one of them had sent before, or the truth in the clear. The more
people, the less a right guess can be chance: what tells everything, if only rarely, shows here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.audit.asking.black_box import Person
from ldp_aggregator.audit.asking.observations import Seen, hashed
from ldp_aggregator.audit.asking.people import Document, spread
from ldp_aggregator.audit.searching.comparisons import Chosen, prefixes
from ldp_aggregator.audit.searching.events import BLOCK, SIDE, WHOLE, Event, fair_rounds
from ldp_aggregator.audit.searching.tight_events import Item, Moment, item_of, tight_event, without_noise

_PAIRS: Final = 24
_SCORED: Final = 48
"""Bytes of an answer that a score weighs."""


Votes = NDArray[np.float64]


@dataclass(frozen=True)
class Guesser:
    """Knowledge from before anything is asked. The first ``often`` people are asked often enough to be guessed."""

    document: Document
    people: Sequence[Person]
    seen: Seen
    often: int

    def claim(self, scope: str = WHOLE, question: int | None = None) -> float:
        """The loss that an upload may have; of the answer to a question its own, beside all answers none."""
        declared = self.question(question) if scope == BLOCK and question is not None else None
        return 0.0 if scope == SIDE else float((declared or self.document["privacy"])["epsilon"])

    def question(self, number: int) -> Mapping[str, Any] | None:
        questions = self.document["questions"]
        return questions[number] if 0 <= number < len(questions) else None

    @cached_property
    def items(self) -> list[list[Item | None]]:
        """For every question of the document the encoded records of who is asked often; None for the others."""
        return [
            [
                item_of(self.document, question, person) if number < self.often else None
                for number, person in enumerate(self.people)
            ]
            for question in self.document["questions"]
        ]

    def votes(self, question: int | None, one: int, other: int) -> list[Votes]:
        """For the uploads of either person, in their order: above 0 what says ``one``, below what says ``other``,
        by the tight events of one question or of all, each with the weight of its epsilon; 0 says nothing.
        """
        return [self.votes_of(question, one, other, author) for author in (one, other)]

    def votes_of(self, question: int | None, one: int, other: int, author: int) -> Votes:
        """The votes of one author's uploads."""
        votes = np.zeros(self.seen.trials[author])
        for table, mine in zip(self.seen.tables, self.seen.rows_of(author), strict=True):
            places = self.seen.within[table.rows[mine]]
            for block in table.shape.blocks:
                declared = self.question(block.question)
                if declared is None or question not in (None, block.question):
                    continue
                first, second = (self.items[block.question][number] for number in (one, other))
                if first is None or second is None or first == second:
                    continue
                payloads = table.payloads[mine, block.payload]
                for sign, says_whom, not_whom in ((1, first, second), (-1, second, first)):
                    says = tight_event(declared, says_whom, not_whom, payloads)
                    if says is not None:
                        votes[places] += sign * float(declared["epsilon"]) * says
        return votes


def pairs_by(items: Sequence[Item | None]) -> list[tuple[int, int]]:
    """Pairs of people with different items, everyone in one pair at most; opposite values of one class first."""
    numbers = [number for number, item in enumerate(items) if item is not None]
    pairs: list[tuple[int, int]] = []
    by_cell: dict[tuple[int, float], list[int]] = {}
    for number in numbers:
        item = items[number]
        if isinstance(item, Moment):
            opposite = by_cell.get((item.cell, -item.value), [])
            if opposite:
                pairs.append((opposite.pop(), number))
            else:
                by_cell.setdefault((item.cell, item.value), []).append(number)
    paired = {number for pair in pairs for number in pair}
    rest = [number for number in numbers if number not in paired]
    rest.sort(key=lambda number: _place(items[number]))
    half = len(rest) // 2
    pairs += [(one, other) for one, other in zip(rest[:half], rest[-half:] if half else [], strict=True)]
    return [(one, other) for one, other in pairs if items[one] != items[other]]


def _place(item: Item | None) -> tuple[float, ...]:
    return (item.cell, item.value) if isinstance(item, Moment) else (float(item or 0),)


def fixed_guesses(guesser: Guesser, rng: np.random.Generator) -> Iterator[Event]:
    """Guesses on all trials: of every question alone, and by whichever question an upload answers alone."""
    scope, questions = BLOCK if guesser.seen.several else WHOLE, range(len(guesser.document["questions"]))
    for number in questions:
        if pairs := pairs_by(guesser.items[number]):
            yield _pooled(guesser, "guesses by the tight event", scope, number, pairs, rng)
    if len(questions) > 1 and scope == WHOLE and (pairs := different(guesser)):
        yield _pooled(guesser, "guesses by the tight events", WHOLE, None, pairs, rng)


def different(guesser: Guesser) -> list[tuple[int, int]]:
    """Pairs of people who differ in the items of as many questions as there are, everyone once at most."""
    items = guesser.items
    left = [number for number in range(len(guesser.people)) if any(of[number] is not None for of in items)]
    pairs: list[tuple[int, int]] = []
    while len(left) > 1 and len(pairs) < _PAIRS:
        one = left.pop(0)
        differing = [sum(_differ(of[one], of[other]) for of in items) for other in left]
        if not max(differing):
            continue
        other = left.pop(int(np.argmax(differing)))
        pairs.append((one, other))
    return pairs


def _differ(one: Item | None, other: Item | None) -> bool:
    if isinstance(one, Moment) and isinstance(other, Moment):
        return one.value != other.value
    return one is not None and other is not None and one != other


def _pooled(
    guesser: Guesser,
    name: str,
    scope: str,
    question: int | None,
    pairs: Sequence[tuple[int, int]],
    rng: np.random.Generator,
) -> Event:
    right = wrong = rounds = 0
    for one, other in pairs:
        taken = fair_rounds(int(guesser.seen.trials[[one, other]].min()), rng)
        if taken is None:
            continue
        for sign, votes, count in zip((1, -1), guesser.votes(question, one, other), taken, strict=True):
            right += int((sign * votes[:count] > 0).sum())
            wrong += int((sign * votes[:count] < 0).sum())
            rounds += count
    questions, claim = () if question is None else (question,), guesser.claim(scope, question)
    first = guesser.people[pairs[0][0]]
    return Event(name, scope, claim, questions, first, None, right, rounds, wrong, rounds, guessed=True)


def summed_guesses(guesser: Guesser, rng: np.random.Generator) -> Iterator[Event]:
    """Guesses by the sum of all answers' votes, where it is far enough from 0: the first half says how far."""
    if not guesser.seen.several:
        return
    pairs = different(guesser)
    halves: list[list[Votes]] = [[], []]
    for one, other in pairs:
        for sign, votes in zip((1, -1), guesser.votes(None, one, other), strict=True):
            for tests in (0, 1):
                halves[tests].append(np.round(sign * votes[tests::2], 9))
    if not pairs:
        return
    chosen = np.concatenate(halves[0])
    levels = np.unique(np.abs(chosen[chosen != 0]))
    if not len(levels):
        return
    right, wrong = (np.array([(sign * chosen >= level).sum() for level in levels]) for sign in (1, -1))
    with np.errstate(divide="ignore"):
        cautious = np.log(right + 0.5) - np.log(wrong + 1) - 3 * np.sqrt(1 / (right + 0.5) + 1 / (wrong + 1))
    level = levels[int(np.argmax(cautious))]
    said_right = said_wrong = rounds = 0
    for number, pair in enumerate(pairs):
        taken = fair_rounds(min(guesser.seen.half(person, True) for person in pair), rng)
        if taken is not None:
            for votes, count in zip(halves[1][2 * number : 2 * number + 2], taken, strict=True):
                said_right += int((votes[:count] >= level).sum())
                said_wrong += int((votes[:count] <= -level).sum())
                rounds += count
    name, first = "guesses by the sum of all tight events", guesser.people[pairs[0][0]]
    yield Event(name, WHOLE, guesser.claim(), (), first, None, said_right, rounds, said_wrong, rounds, guessed=True)


def pair_columns(guesser: Guesser, chosen: Chosen) -> None:
    """Columns that are made for a pair: the votes of the tight events, and Naive Bayes over all bytes."""
    seen, people = guesser.seen, guesser.people
    every = [pair for of_question in guesser.items for pair in pairs_by(of_question)[:_PAIRS]]
    pairs = list(dict.fromkeys([*different(guesser), *every, *((0, other) for other in range(1, min(len(people), 9)))]))
    for one, other in pairs[: 2 * _PAIRS]:
        votes = [np.round(of, 9) for of in guesser.votes(None, one, other)]
        _add(chosen, guesser, "sum of the tight events", (one, other), votes)
        _add(chosen, guesser, "score of all bytes", (one, other), _byte_scores(seen, one, other))


def _add(chosen: Chosen, guesser: Guesser, name: str, pair: tuple[int, int], columns: list[Votes]) -> None:
    claim = guesser.claim()
    values, codes = np.unique(np.concatenate(columns), return_inverse=True)
    of_side = np.split(codes, [len(columns[0])])
    chose, tested = (np.array([np.bincount(of[tests::2], minlength=len(values)) for of in of_side]) for tests in (0, 1))
    of_chose, of_tested = (np.array([guesser.seen.half(person, tests) for person in pair]) for tests in (False, True))
    order, bounds = prefixes(chose, chose[::-1], of_chose[:, None], of_chose[::-1, None])
    for side in (0, 1):
        best = int(np.argmax(bounds[side]))
        if bounds[side, best] > -50:
            values_in = order[side, : best + 1]
            (ones, of_one), (others, of_other) = (
                (int(tested[who][values_in].sum()), int(of_tested[who])) for who in (side, 1 - side)
            )
            who, whom = (guesser.people[number] for number in (pair if side == 0 else pair[::-1]))
            event = Event(name, WHOLE, claim, (), who, whom, ones, of_one, others, of_other)
            chosen.add(float(bounds[side, best]) - claim, event)


def _byte_scores(seen: Seen, one: int, other: int) -> list[Votes]:
    """ln(share among one's / share among the other's) in the first half, added over all bytes of ids and payloads and
    the shape, in quarters; a score for every upload of either.
    """
    scores = [np.zeros(seen.trials[author]) for author in (one, other)]
    rows = [seen.rows_of(author) for author in (one, other)]
    for number, table in enumerate(seen.tables):
        data, places = [], []
        for author in (0, 1):
            mine = rows[author][number]
            data.append(np.concatenate([table.payloads[mine, :_SCORED], table.ids[mine, :16]], axis=1))
            places.append(seen.within[table.rows[mine]])
        fitted = [data[side][places[side] % 2 == 0] for side in (0, 1)]
        shape = np.log(len(fitted[0]) + 0.5) - np.log(len(fitted[1]) + 0.5)
        totals = [np.full(len(data[side]), shape) for side in (0, 1)]
        for place in range(data[0].shape[1]):
            ones, others = (np.bincount(rows_of[:, place], minlength=256) + 1.0 for rows_of in fitted)
            weight = np.log(ones / ones.sum()) - np.log(others / others.sum())
            for side in (0, 1):
                totals[side] += weight[data[side][:, place]]
        for side in (0, 1):
            scores[side][places[side]] = np.round(4 * totals[side]) / 4
    return scores


CLEAR: Final = "the truth without noise"

_PLAYERS: Final = 16
_QUESTIONS: Final = 8


def games(guesser: Guesser, rng: np.random.Generator) -> Iterator[Event]:
    """Guesses among many: whose upload is what only one of them sent in the first half, or the truth in the clear."""
    classes: dict[str | None, int] = {}
    often = range(guesser.often)
    for number in often:
        classes.setdefault(guesser.people[number].label, number)
    for players in dict.fromkeys((tuple(often), tuple(classes.values())[:_PLAYERS], tuple(often[:2]))):
        if len(players) < 2:
            continue
        for name, scope, question, keys in _keys(guesser.seen, len(guesser.document["questions"])):
            yield _game(guesser, f"{name} that only one person had sent", scope, question, keys, players, rng)
    yield from _in_the_clear(guesser, rng)


def _keys(seen: Seen, questions: int) -> Iterator[tuple[str, str, int | None, NDArray[Any]]]:
    """List the marks that may be recognised, as one number for every answer; by name, scope and question."""
    chosen = spread(range(questions), _QUESTIONS)
    whole = np.zeros(len(seen.person), dtype=np.uint64)
    ids = {name: whole.copy() for name in ("the first half of an id", "the second half of an id", "an id")}
    blocks = {question: whole.copy() for question in chosen}
    crossed = whole.copy()
    for number, table in enumerate(seen.tables):
        mark = np.uint64(number << 8)
        whole[table.rows] = hashed(table.payloads) ^ mark
        for name, places in zip(ids, (slice(0, 8), slice(8, 16), slice(None)), strict=True):
            ids[name][table.rows] = hashed(table.ids[:, places]) ^ mark
        width = min((block.width for block in table.shape.blocks), default=0)
        combined = np.zeros((len(table.rows), width), dtype=np.uint8)
        for place, block in enumerate(table.shape.blocks):
            if block.question in blocks:
                blocks[block.question][table.rows] = hashed(table.payloads[:, block.payload]) ^ np.uint64(1)
            if place < 2:
                combined ^= table.payloads[:, block.payload][:, :width]
        crossed[table.rows] = hashed(combined) ^ mark
    yield "the whole answer", WHOLE, None, whole
    for name, keys in ids.items():
        yield name, SIDE, None, keys
    if seen.several:
        yield "an exclusive or of two answers", WHOLE, None, crossed
        for question, keys in blocks.items():
            yield "an answer", BLOCK, question, keys


def _game(
    guesser: Guesser,
    name: str,
    scope: str,
    question: int | None,
    keys: NDArray[Any],
    players: tuple[int, ...],
    rng: np.random.Generator,
) -> Event:
    seen = guesser.seen
    playing = np.isin(seen.person, players)
    first = playing & ~seen.tests
    marks, places = np.unique(keys[first], return_inverse=True)
    authors = seen.person[first]
    owner = np.full(len(marks), -1)
    owner[places] = authors
    shared = np.zeros(len(marks), dtype=np.bool_)
    shared[places[owner[places] != authors]] = True
    owner[shared] = -1
    taken = fair_rounds(min(seen.half(player, True) for player in players), rng, len(players))
    right = wrong = 0
    if taken is not None and len(marks):
        for player, count in zip(players, taken, strict=True):
            theirs = np.flatnonzero(seen.tests & (seen.person == player))
            read = keys[theirs[np.argsort(seen.within[theirs])][:count]]
            at = np.minimum(np.searchsorted(marks, read), len(marks) - 1)
            says = np.where((marks[at] == read) & (read != 0), owner[at], -1)
            right += int((says == player).sum())
            wrong += int(((says >= 0) & (says != player)).sum())
    asked_for = () if question is None else (question,)
    rounds = 0 if taken is None else sum(taken)
    one = guesser.people[players[0]]
    claim = guesser.claim(scope, question)
    return Event(name, scope, claim, asked_for, one, None, right, rounds, wrong, rounds, True, len(players))


def _in_the_clear(guesser: Guesser, rng: np.random.Generator) -> Iterator[Event]:
    """Answers that are the truth without any noise, guessed to be their owner's; on all trials."""
    scope = BLOCK if guesser.seen.several else WHOLE
    for number, question in enumerate(guesser.document["questions"]):
        people: dict[Item, int] = {}
        for person, item in enumerate(guesser.items[number]):
            if item is not None:
                people.setdefault(item, person)
        payloads = {item: clear for item in people if (clear := without_noise(question, item)) is not None}
        players = [people[item] for item in payloads]
        if len(players) < 2:
            continue
        # Where the lot asks for too many uploads, nothing is guessed; the event keeps its part of what may be wrong.
        taken = fair_rounds(int(guesser.seen.trials[players].min()), rng, len(players)) or (0,) * len(players)
        right = wrong = 0
        for player, count in zip(players, taken, strict=True):
            for item, hits in _hits(guesser.seen, number, player, count, payloads).items():
                right, wrong = (right + hits, wrong) if people[item] == player else (right, wrong + hits)
        claim = guesser.claim(scope, number)
        one = guesser.people[players[0]]
        yield Event(CLEAR, scope, claim, (number,), one, None, right, sum(taken), wrong, sum(taken), True, len(players))


def _hits(seen: Seen, question: int, player: int, count: int, payloads: dict[Item, bytes]) -> dict[Item, int]:
    """Count how many of a player's first answers are each of the payloads."""
    found = dict.fromkeys(payloads, 0)
    for table, theirs in zip(seen.tables, seen.rows_of(player), strict=True):
        mine = theirs[seen.within[table.rows[theirs]] < count]
        for block in table.shape.blocks:
            if block.question == question:
                rows = table.payloads[mine, block.payload]
                for item, payload in payloads.items():
                    if block.width == len(payload):
                        found[item] += int((rows == np.frombuffer(payload, dtype=np.uint8)).all(axis=1).sum())
    return found
