"""What several answers of one device reveal together: never below the exact loss, and far below what adds up."""

import math
from fractions import Fraction

import numpy as np
import pytest
from drafts import draft, text

from ldp_aggregator import composition
from ldp_aggregator.amplification import campaign_blankets, epsilon_bound
from ldp_aggregator.composition import can_compose, composed_bound
from ldp_aggregator.guarantees import published_guarantee
from ldp_aggregator.mechanisms.analysis import Blanket
from ldp_protocols import Campaign


def answers_all(count, epsilon):
    features = [text(f"f{place}", "a", "b", "c", "d") for place in range(count)]
    return Campaign.compile(draft(*features, privacy={"epsilon": epsilon, "answers": "all"}))


def binomials(trials, p):
    logs = [math.lgamma(trials + 1) - math.lgamma(k + 1) - math.lgamma(trials - k + 1) for k in range(trials + 1)]
    return np.exp([log + k * math.log(p) + (trials - k) * math.log1p(-p) for k, log in enumerate(logs)])


def shuffled(reports, p):
    """The laws of the number of ones among randomised bits of which all others are zeros: one is 1, one is 0."""
    others = binomials(reports - 1, 1 - p)
    return tuple(np.convolve(others, [1 - of_one, of_one]) for of_one in (p, 1 - p))


def excess(first, second, epsilon):
    return float(np.maximum(first - math.exp(epsilon) * second, 0).sum())


@pytest.mark.parametrize(("reports", "local"), [(20, 0.5), (60, 1.0), (300, 2.0), (1000, 3.0)])
@pytest.mark.parametrize("delta", [1e-2, 1e-5])
def test_the_composition_of_two_randomised_bits_is_never_below_what_they_reveal_exactly(reports, local, delta):
    share = Fraction(math.exp(local) / (1 + math.exp(local))).limit_denominator(10**6)
    told = 2 * share - 1
    blanket = Blanket(share / (1 - share), 2 * (1 - share), 1 - share, Fraction(0))
    assert 0 < told < 1
    one = epsilon_bound(blanket, reports, delta / 2) or math.log(blanket.ratio)
    found = composed_bound((blanket, blanket), reports, delta, one)
    first, second = shuffled(reports, float(share))
    for pair in ((first, second), (second, first), (first[::-1], second[::-1])):
        assert excess(np.outer(pair[0], pair[0]).ravel(), np.outer(pair[1], pair[1]).ravel(), found) <= delta


@pytest.mark.parametrize(("features", "epsilon", "times"), [(8, 1.0, 3), (8, 4.0, 3), (35, 1.0, 6)])
def test_many_groups_reveal_a_third_of_what_adds_up_and_no_group_alone_reveals_more(features, epsilon, times):
    campaign = answers_all(features, epsilon)
    blankets = campaign_blankets(campaign)
    added = sum(epsilon_bound(blanket, 20_000, 1e-9 / len(blankets)) for blanket in blankets)
    guarantee = published_guarantee(campaign, 20_000)
    assert guarantee.epsilon * times < added
    assert guarantee.epsilon > epsilon_bound(blankets[0], 20_000, 1e-9)
    assert guarantee.delta == 1e-9
    assert any(one.startswith("numerical (dp-accounting) composition") for one in guarantee.conditions)


def test_without_the_library_and_for_a_delta_that_doubles_cannot_tell_the_groups_add_up(monkeypatch):
    campaign = answers_all(4, 1.0)
    least = published_guarantee(campaign, 20_000, delta=1e-11)
    monkeypatch.setattr(composition, "find_spec", lambda name: None)
    without = published_guarantee(campaign, 20_000)
    blankets = campaign_blankets(campaign)
    added = sum(epsilon_bound(blanket, 20_000, 1e-9 / len(blankets)) for blanket in blankets)
    assert without.epsilon == pytest.approx(added, rel=1e-9)
    for one in (least, without):
        assert any(condition.startswith("basic composition") for condition in one.conditions)
    assert not can_compose(1e-9)


def test_the_curve_that_is_composed_is_convex_and_above_no_point():
    random = np.random.default_rng(1)
    x = np.sort(random.random(200))
    y = (1 - x) ** 2 + 0.05 * random.random(200)
    found = composition._convex(x, y)
    assert (found <= y + 1e-12).all()
    assert (found >= (1 - x) ** 2 - 1e-12).all(), "a convex curve below the points stays below"
    slopes = np.diff(found) / np.diff(x)
    assert (np.diff(slopes) >= -1e-9).all()
