"""The bounds are wrong as seldom as they say, whatever the true probabilities are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from ldp_aggregator.audit.searching.events import fair_rounds, guess_bound, loss_bound


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("guesses", [5, 60, 2000])
def test_the_best_guesser_of_a_sound_client_exceeds_its_loss_as_seldom_as_stated(epsilon, guesses):
    """Exactly: the probabilities of all counts at which the bound is above the loss."""
    right = 1 / (1 + math.exp(-epsilon))
    for alpha in (0.05, 0.001):
        wrong = sum(
            binom.pmf(count, guesses, right)
            for count in range(guesses + 1)
            if guess_bound(count, guesses - count, alpha) > epsilon
        )
        assert wrong <= alpha


@pytest.mark.parametrize(("one", "other"), [(0.5, 0.2), (0.02, 0.01), (0.9, 0.9)])
def test_an_event_exceeds_its_ratio_as_seldom_as_stated(one, other):
    trials, alpha = 80, 0.02
    ones = np.arange(trials + 1)
    bounds = loss_bound(ones[:, None], trials, ones[None, :], trials, alpha)
    chances = binom.pmf(ones, trials, one)[:, None] * binom.pmf(ones, trials, other)[None, :]
    assert chances[bounds > math.log(one / other)].sum() <= alpha


def test_nothing_seen_proves_nothing_and_what_was_never_seen_of_the_other_a_loss_that_grows_with_the_trials():
    assert loss_bound(0, 100, 0, 100, 0.01) == -np.inf
    assert loss_bound(100, 100, 100, 100, 0.01) < 0, "everything seen of both proves nothing"
    assert guess_bound(0, 10, 0.01) == guess_bound(0, 0, 0.01) == -math.inf
    assert guess_bound(10, 10, 0.01) < 0
    few, many = (float(loss_bound(n // 2, n, 0, n, 0.01)) for n in (100, 10_000))
    assert 1 < few < many - 4


def test_guesses_prove_more_than_either_event_alone():
    """Direct encoding over 32 cells at epsilon 0.5, at the counts to be expected."""
    p, q, trials = 0.0505, 0.0306, 100_000
    guessed = guess_bound(round(2 * trials * p), round(2 * trials * q), 1e-3)
    event = float(loss_bound(round(trials * p), trials, round(trials * q), trials, 1e-3))
    assert 0.85 * 0.5 < guessed < 0.5
    assert event < 0.85 * 0.5


def test_rounds_are_as_fair_coins_would_have_them_and_take_almost_all_uploads_or_are_not_played():
    class Heads:
        def binomial(self, rounds, probability):
            return rounds

    assert fair_rounds(1000, Heads()) is None
    assert fair_rounds(4, np.random.default_rng(1)) is None
    rng = np.random.default_rng(1)
    drawn = [fair_rounds(10_000, rng) for _ in range(2000)]
    assert None not in drawn
    ones = np.array([ones for ones, _ in drawn])
    assert {one + other for one, other in drawn} == {2 * 9717}
    assert ones.max() <= 10_000
    # False alarm 1e-5 each: a binomial's mean, and its standard deviation.
    assert abs(ones.mean() - 9717) < 4.5 * math.sqrt(9717 / 2 / 2000)
    assert abs(ones.std() / math.sqrt(9717 / 2) - 1) < 0.08
