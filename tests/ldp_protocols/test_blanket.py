"""What a device recomputes of a crowd: never below the truth, and the server's own bound of the same reports."""

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement
from random import Random

import pytest

from ldp_protocols.blanket import delta_bound, keeps, largest_local, lot_of
from ldp_protocols.document.crowd import Crowd
from ldp_protocols.mechanisms import DirectEncoding


def settings(count, seed):
    """Questions (domain size, weight), a local epsilon, honest reports and an epsilon below it."""
    coins = Random(seed)
    for _ in range(count):
        asked = [(coins.choice((2, 3, 4, 8, 20, 100)), coins.randint(1, 5)) for _ in range(coins.randint(1, 6))]
        local = coins.choice((0.1, 0.5, 1, 2, 4, 6))
        yield asked, local, int(10 ** coins.uniform(0, 6)), local * 10 ** coins.uniform(-2, -0.05)


def blanket_of(asked, local):
    return lot_of((DirectEncoding.make(size, Fraction(repr(local))), weight) for size, weight in asked)


@pytest.mark.parametrize("count", [40, pytest.param(1000, marks=pytest.mark.long)])
def test_the_servers_bound_of_the_same_reports_is_the_same(count):
    pytest.importorskip("numpy", reason="the aggregator's packages are not installed")
    from ldp_aggregator.amplification import delta_bound as of_server
    from ldp_aggregator.mechanisms.analysis import Blanket

    for asked, local, reports, epsilon in settings(count, 1):
        ratio, told, neither = blanket_of(asked, local)
        of_all = Blanket(ratio, 2 * told + neither, told, Fraction(0))
        wanted = of_server(of_all, reports, epsilon)
        assert delta_bound(blanket_of(asked, local), reports, epsilon) == pytest.approx(wanted, rel=1e-9, abs=0)


@pytest.mark.parametrize("count", [30, pytest.param(300, marks=pytest.mark.long)])
def test_the_bound_is_not_below_the_exact_loss_of_a_pair(count):
    """Everybody else has a third record, and the two records of one device differ in every question."""
    np = pytest.importorskip("numpy", reason="the aggregator's packages are not installed")
    stats = pytest.importorskip("scipy.stats", reason="the aggregator's packages are not installed")
    compared = 0
    for asked, local, reports, epsilon in settings(count, 2):
        sizes = [(size + 1, weight) for size, weight in asked]
        blanket = blanket_of(sizes, local)
        q, p = float(blanket.told), float(blanket.told * blanket.ratio)
        others, spread = min(reports, 1500) - 1, 7
        top = int(others * q + spread * math.sqrt(others * q) + spread) + 1
        first = np.arange(-1, top)
        grid = stats.binom.pmf(first, others, q)[:, None] * stats.binom.pmf(
            first[None, :], np.maximum(others - first[:, None], 0), q / (1 - q)
        )
        here = p * grid[:-1, 1:] + q * grid[1:, :-1] + (1 - p - q) * grid[1:, 1:]
        exact = np.maximum(here - math.exp(epsilon) * here.T, 0).sum()
        told = delta_bound(blanket, others + 1, epsilon)
        assert told >= exact
        compared += exact > 1e-13
    assert compared > count / 3


@pytest.mark.parametrize(("size", "local"), [(2, 0.7), (3, 2.0), (4, 3.0)])
def test_the_bound_is_not_below_the_truth_of_crowds_up_to_five(size, local):
    mechanism = DirectEncoding.make(size, Fraction(repr(local)))
    law = [[float(mechanism.p if x == y else mechanism.q) for y in range(size)] for x in range(size)]

    def shuffled(record, others):
        laws = {(0,) * size: 1.0}
        for one in (record, *others):
            added = Counter()
            for counts, probability in laws.items():
                for y in range(size):
                    more = (*counts[:y], counts[y] + 1, *counts[y + 1 :])
                    added[more] += probability * law[one][y]
            laws = added
        return laws

    for devices in range(1, 6):
        for others in combinations_with_replacement(range(size), devices - 1):
            here, there = shuffled(0, others), shuffled(1, others)
            for epsilon in (0.01, 0.2 * local, 0.6 * local, 0.99 * local):
                exact = sum(max(0.0, here[seen] - math.exp(epsilon) * there[seen]) for seen in here)
                assert delta_bound(lot_of([(mechanism, 1)]), devices, epsilon) >= exact * (1 - 1e-12)


def test_the_largest_local_epsilon_keeps_the_promise_and_the_next_one_does_not():
    crowd = Crowd(1, 1e-9, 20_000, 0.5)
    asked = [(8, 1)] * 8
    found = largest_local(asked, crowd, 16)
    assert found == pytest.approx(4.97, abs=0.05)
    assert keeps(blanket_of(asked, found), crowd)
    assert not keeps(blanket_of(asked, found + 1e-4), crowd)
    assert largest_local(asked, crowd, 4) == 4
    assert largest_local(asked, crowd, 1 / 3) == 1 / 3
    assert largest_local(asked, Crowd(1, 1e-9, 100, 0.01), 16) == 1, "who is alone keeps what the local noise promises"


def test_known_bounds_of_known_crowds():
    """Of 20,000, 90 %, half and a quarter of them honest: 1.07, 1.64 and 4.66 where all of them were 1.00."""
    asked = [(8, 1)] * 8
    for devices, epsilon in ((20_000, 1.0), (18_000, 1.07), (10_000, 1.64), (5_000, 4.66)):
        assert (
            delta_bound(blanket_of(asked, 5.64), devices, epsilon * 1.01)
            < 1e-9
            < delta_bound(blanket_of(asked, 5.64), devices, epsilon * 0.985)
        )
