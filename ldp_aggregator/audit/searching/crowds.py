"""Guesses among many people: whose is what only one of them had sent before, or the truth in the clear?

The more people, the less a right guess can be chance: what tells everything, if only rarely, shows here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.audit.asking.observations import Seen, hashed
from ldp_aggregator.audit.asking.people import spread
from ldp_aggregator.audit.searching.events import BLOCK, SIDE, WHOLE, Event, fair_rounds
from ldp_aggregator.audit.searching.guesses import Guesser
from ldp_aggregator.audit.searching.tight_events import Item, without_noise

CLEAR: Final = "the truth without noise"

_PLAYERS: Final = 16
_QUESTIONS: Final = 8


def games(guesser: Guesser, rng: np.random.Generator) -> Iterator[Event]:
    """Guesses among many: whose upload is what only one of them sent in the first half, or the truth in the clear."""
    classes: dict[str, int] = {}
    often = range(guesser.often)
    for number in often:
        classes.setdefault(guesser.people[number].label, number)
    for players in dict.fromkeys(
        (
            tuple(often),
            tuple(classes.values())[:_PLAYERS],
            tuple(often[:2]),
        )
    ):
        if len(players) < 2:
            continue
        for name, scope, question, keys in _keys(guesser.seen, len(guesser.document["questions"])):
            yield _game(guesser, f"{name} that only one person had sent", scope, question, keys, players, rng)
    yield from _in_the_clear(guesser, rng)


def _keys(seen: Seen, questions: int) -> Iterator[tuple[str, str, int | None, NDArray[Any]]]:
    """List the marks that may be recognised, as one number for every answer; by name, scope and question."""
    asked = spread(range(questions), _QUESTIONS)
    whole = np.zeros(len(seen.person), dtype=np.uint64)
    ids = {name: whole.copy() for name in ("the first half of an id", "the second half of an id", "an id")}
    blocks = {question: whole.copy() for question in asked}
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
    if any(len(table.shape.blocks) > 1 for table in seen.tables):
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
    claim = float(guesser.document["privacy"]["epsilon"])
    if scope == SIDE:
        claim = 0.0
    elif question is not None:
        asked = guesser.question(question)
        claim = claim if asked is None else float(asked["epsilon"])
    playing = np.isin(seen.person, players)
    first = playing & ~seen.tests
    known, places = np.unique(keys[first], return_inverse=True)
    authors = seen.person[first]
    owner = np.full(len(known), -1)
    owner[places] = authors
    shared = np.zeros(len(known), dtype=np.bool_)
    shared[places[owner[places] != authors]] = True
    owner[shared] = -1
    taken = fair_rounds(min(seen.half(player, True) for player in players), rng, len(players))
    right = wrong = 0
    if taken is not None and len(known):
        for player, count in zip(players, taken, strict=True):
            theirs = np.flatnonzero(seen.tests & (seen.person == player))
            read = keys[theirs[np.argsort(seen.within[theirs])][:count]]
            at = np.minimum(np.searchsorted(known, read), len(known) - 1)
            says = np.where((known[at] == read) & (read != 0), owner[at], -1)
            right += int((says == player).sum())
            wrong += int(((says >= 0) & (says != player)).sum())
    asked_for = () if question is None else (question,)
    rounds = 0 if taken is None else sum(taken)
    one = guesser.people[players[0]]
    return Event(name, scope, claim, asked_for, one, None, right, rounds, wrong, rounds, True, len(players))


def _in_the_clear(guesser: Guesser, rng: np.random.Generator) -> Iterator[Event]:
    """Answers that are the truth without any noise, guessed to be their owner's; on all trials."""
    several = any(len(table.shape.blocks) > 1 for table in guesser.seen.tables)
    for number, question in enumerate(guesser.document["questions"]):
        people: dict[Item, int] = {}
        for person, item in enumerate(guesser.items(number)):
            if item is not None:
                people.setdefault(item, person)
        told = {item: clear for item in people if (clear := without_noise(question, item)) is not None}
        players = [people[item] for item in told]
        if len(players) < 2:
            continue
        # Where the lot asks for too many uploads, nothing is guessed; the event keeps its part of what may be wrong.
        taken = fair_rounds(int(guesser.seen.trials[players].min()), rng, len(players)) or (0,) * len(players)
        right = wrong = 0
        for player, count in zip(players, taken, strict=True):
            for item, hits in _hits(guesser.seen, number, player, count, told).items():
                right, wrong = (right + hits, wrong) if people[item] == player else (right, wrong + hits)
        scope = BLOCK if several else WHOLE
        claim = float(question["epsilon"] if several else guesser.document["privacy"]["epsilon"])
        one = guesser.people[players[0]]
        yield Event(
            CLEAR,
            scope,
            claim,
            (number,),
            one,
            None,
            right,
            sum(taken),
            wrong,
            sum(taken),
            True,
            len(players),
        )


def _hits(seen: Seen, question: int, player: int, count: int, told: dict[Item, bytes]) -> dict[Item, int]:
    """Count how many of a player's first answers are each of the payloads."""
    found = dict.fromkeys(told, 0)
    for table, theirs in zip(seen.tables, seen.rows_of(player), strict=True):
        mine = theirs[seen.within[table.rows[theirs]] < count]
        for block in table.shape.blocks:
            if block.question == question:
                rows = table.payloads[mine, block.payload]
                for item, payload in told.items():
                    if block.width == len(payload):
                        found[item] += int((rows == np.frombuffer(payload, dtype=np.uint8)).all(axis=1).sum())
    return found
