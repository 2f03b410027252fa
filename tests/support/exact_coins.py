"""Coins whose every outcome can be enumerated, and coins with a seed."""

import random
from collections import defaultdict
from contextlib import suppress
from fractions import Fraction
from itertools import pairwise

from ldp_protocols.exact import Coins

ONE = 2**64


class SeededCoins(Coins):
    """Reproducible words for statistical tests."""

    def __init__(self, seed):
        self._random = random.Random(seed)

    def words(self, count):
        return [self._random.getrandbits(64) for _ in range(count)]


class PrunedError(Exception):
    """The path through the coins has become too improbable to follow."""


class BranchingCoins(Coins):
    """Follows ``path`` through the choices a program makes, the first option where the path ends.

    A word is one of the intervals that ``thresholds`` cut [0, 2**64) into, represented by its least (or, with
    ``upper``, its largest) member: exact for a program that only compares words with those thresholds. Likewise all
    values of ``below`` from ``alike`` on are one outcome, for a program that does not tell them apart.
    """

    def __init__(self, path, thresholds, upper, floor, alike):
        self.choices, self.probability = [], Fraction(1)
        self._path, self._floor, self._alike = path, floor, alike
        edges = sorted({0, ONE, *thresholds})
        self._intervals = [
            (last - 1 if upper else first, Fraction(last - first, ONE)) for first, last in pairwise(edges)
        ]

    def words(self, count):
        return [self._choose(self._intervals) for _ in range(count)]

    def bernoulli(self, probability):
        share = Fraction(probability, ONE)
        return bool(self._choose([option for option in ((1, share), (0, 1 - share)) if option[1]]))

    def below(self, bound):
        apart = bound if self._alike is None else min(self._alike, bound)
        options = [(value, Fraction(1, bound)) for value in range(apart)]
        return self._choose([*options, (apart, Fraction(bound - apart, bound))] if apart < bound else options)

    def _choose(self, options):
        position = len(self.choices)
        choice = self._path[position] if position < len(self._path) else 0
        self.choices.append((choice, len(options)))
        value, share = options[choice]
        self.probability *= share
        if self.probability < self._floor:
            raise PrunedError
        return value


def enumerate_outcomes(program, thresholds=(), *, upper=False, floor=Fraction(0), alike=None):
    """The exact distribution of what ``program`` returns. Paths below ``floor`` are cut: their mass is missing."""
    distribution = defaultdict(Fraction)
    path = []
    while True:
        coins = BranchingCoins(path, thresholds, upper, floor, alike)
        with suppress(PrunedError):
            distribution[program(coins)] += coins.probability
        choices = coins.choices
        while choices and choices[-1][0] == choices[-1][1] - 1:
            choices.pop()
        if not choices:
            return dict(distribution)
        path = [choice for choice, _ in choices[:-1]] + [choices[-1][0] + 1]
