"""Predictions of a model before anybody evaluates it: a stated rate of false alarms, and numbers that hold.

Tallies are drawn from the exact law of the counts; seeds are fixed.
"""

import numpy as np
import pandas as pd
import pytest
from drafts import draft, number, text

from ldp_aggregator import Tally, train
from ldp_aggregator.learning import expected_accuracy
from ldp_aggregator.learning.expected_accuracy import PredictedAccuracy, best_feature, predict_accuracy
from ldp_aggregator.learning.training import Decoding, learn
from ldp_aggregator.mechanisms import analysis_of
from ldp_protocols import Campaign
from ldp_protocols.document.model import GaussianLikelihood
from ldp_simulations import simulate


def campaign_of(features, values=2, classes=2, *, epsilon=1.0, missing=False):
    label = {"name": "y", "classes": [f"c{i}" for i in range(classes)]}
    asked = [text(f"x{n}", *(f"v{i}" for i in range(values)), missing=missing) for n in range(features)]
    return Campaign.compile(draft(*asked, label=label, privacy={"epsilon": epsilon}))


def drawn(campaign, prior, tables, devices, seed, *, absent=0.1):
    """A tally of so many devices; ``tables`` are P(value | class) of every feature."""
    rng, tally, prior = np.random.default_rng(seed), Tally(campaign), np.array(prior)
    weights = np.array([one.weight for one in campaign.questions], dtype=float)
    for question, n in zip(campaign.questions, rng.multinomial(devices, weights / weights.sum()), strict=True):
        cells = prior
        if question.feature is not None:
            cells = tables[int(question.feature[1:])] * prior
            if campaign.feature(question.feature).missing:
                cells = np.concatenate([cells * (1 - absent), [prior * absent]])
        tally.add(question.index, int(n), analysis_of(question.mechanism).tally(rng.multinomial(n, cells.ravel()), rng))
    return tally


def told_of(campaign, tally):
    return predict_accuracy(learn([(campaign, tally)], Decoding()))


@pytest.mark.parametrize(
    ("features", "values", "prior", "devices", "missing"),
    [
        (2, 2, [0.5, 0.5], 1_000, False),
        (10, 3, [0.7, 0.3], 30_000, True),
    ],
)
def test_features_that_tell_nothing_are_called_better_in_three_of_a_hundred_runs_at_most(
    features, values, prior, devices, missing
):
    """At a rate of .015 more than five of 100 runs would be a chance of .004; these seeds are as they are. Sixty other
    settings are in ``test_independence.py``.
    """
    campaign = campaign_of(features, values, len(prior), missing=missing)
    shares = np.random.default_rng(5).dirichlet(np.ones(values), features)
    tables = [np.repeat(one[:, None], len(prior), axis=1) for one in shares]
    above = [told_of(campaign, drawn(campaign, prior, tables, devices, seed)).tells_something for seed in range(100)]
    assert sum(above) <= 5


@pytest.mark.parametrize(("devices", "least"), [(20_000, 0.5), (100_000, 0.98)])
def test_twelve_weak_features_are_found_as_often_as_a_chi_square_test_finds_them(devices, least):
    campaign, weak = campaign_of(12), np.array([[0.55, 0.45], [0.45, 0.55]])
    runs = [told_of(campaign, drawn(campaign, [0.5, 0.5], [weak] * 12, devices, seed)) for seed in range(60)]
    assert np.mean([one.tells_something for one in runs]) >= least
    assert np.mean([one.independent for one in runs if one.tells_something]) == pytest.approx(0.63, abs=0.06)


@pytest.mark.parametrize("missing", [True, pytest.param(False, marks=pytest.mark.long)])
@pytest.mark.parametrize("devices", [10_000, 200_000])
def test_what_the_best_feature_alone_reaches_is_told_without_the_winners_curse(devices, missing):
    """Ten features that reach .54, and one that reaches .65; of who holds no value half is right."""
    campaign = campaign_of(11, missing=missing)
    tables = [np.array([[0.5 + gap, 0.5 - gap], [0.5 - gap, 0.5 + gap]]) for gap in (0.15, *[0.04] * 10)]
    truth = 0.9 * 0.65 + 0.1 * 0.5 if missing else 0.65
    found = []
    for seed in range(80):
        learned = learn([(campaign, drawn(campaign, [0.5, 0.5], tables, devices, seed))], Decoding())
        found.append(best_feature(learned, np.random.default_rng(0)))
    mean, error = np.mean([one.accuracy for one in found]), np.std([one.accuracy for one in found]) / np.sqrt(80)
    assert mean < truth + 3 * error
    assert np.mean([one.low <= truth for one in found]) > 0.93
    if devices > 100_000:
        assert mean == pytest.approx(truth, abs=0.012)
        assert {one.feature for one in found} == {"x0"}


def test_how_often_each_class_is_said_is_that_of_its_own_tables():
    campaign = campaign_of(1, epsilon=8.0)
    table = np.array([[0.9, 0.2], [0.1, 0.8]])
    tally = drawn(campaign, [0.7, 0.3], [table], 200_000, 1)
    told = told_of(campaign, tally)
    assert told == told_of(campaign, tally), "the same reports give the same prediction"
    assert told.says["c1"] == pytest.approx(0.7 * 0.1 + 0.3 * 0.8, abs=0.02)
    never = told_of(campaign, drawn(campaign, [0.98, 0.02], [table], 200_000, 1))
    assert never.says["c1"] == 0


@pytest.mark.parametrize("post", ["posterior", "norm_sub", "floor"])
@pytest.mark.parametrize("reports", [0, 1])
def test_a_model_of_no_reports_or_one_is_not_called_better(post, reports):
    campaign = campaign_of(3)
    tally = drawn(campaign, [0.5, 0.5], [np.full((2, 2), 0.5)] * 3, reports, 1)
    told = train(campaign, tally, post=post).model_.training["expected"]
    assert not told["tells_something"]
    assert (told["best_feature"] is None) == (not any(tally.n[1:]))


def test_numbers_that_tell_nothing_are_no_reason_and_those_that_tell_are():
    rng, found = np.random.default_rng(3), {}
    for gap in (0.0, 0.3):
        of_b = rng.random(20_000) < 0.5
        frame = pd.DataFrame({"g": np.clip(rng.normal(0.35 + gap * of_b, 0.1), 0, 1)})
        for continuous in ("sign", "auto"):
            privacy = {"epsilon": 2.0, "continuous": continuous}
            campaign = Campaign.compile(draft(number("g", missing=True), privacy=privacy))
            tally = simulate(campaign, frame, np.where(of_b, "b", "a"), rng=1, fidelity="counts")
            found[gap, continuous] = told_of(campaign, tally)
    assert all(one.p_value > 0.015 for (gap, _), one in found.items() if not gap)
    assert all(one.tells_something for (gap, _), one in found.items() if gap)
    assert all(one.best_feature is None for one in found.values())


def numbers():
    """6,000 people, three of ten in b; g tells something of it and is missing for a fifth, h tells nothing."""
    rng = np.random.default_rng(3)
    of_b = rng.random(6_000) < 0.3
    g = np.clip(rng.normal(0.35 + 0.2 * of_b, 0.2), 0, 1)
    g[::5] = np.nan
    frame = pd.DataFrame({"g": g, "h": rng.random(6_000)})
    label = {"name": "y", "classes": ["a", "b"]}
    campaign = Campaign.compile(draft(number("g", missing=True), number("h"), label=label, privacy={"epsilon": 4.0}))
    return campaign, simulate(campaign, frame, np.where(of_b, "b", "a"), rng=1, fidelity="counts")


def values(devices, **more):
    """Three classes, a feature that tells something of them and one that hardly does."""
    telling = [[0.6, 0.3, 0.2], [0.3, 0.4, 0.2], [0.1, 0.3, 0.6]]
    hardly = [[0.4, 0.3, 0.35], [0.3, 0.4, 0.35], [0.3, 0.3, 0.3]]
    campaign = campaign_of(2, 3, 3, **more)
    return campaign, drawn(campaign, [0.5, 0.3, 0.2], [np.array(telling), np.array(hardly)], devices, 1)


@pytest.mark.parametrize(
    ("told", "figures", "p_value", "best", "says"),
    [
        (
            lambda: values(20_000, epsilon=2.0, missing=True),
            (0.473, 0.5639, 0.0907, 0.0132),
            1.04e-61,
            (0.55767, 0.52969, 0.58566),
            (0.622, 0.1089, 0.2691),
        ),
        (
            lambda: values(3_000, epsilon=1.0),
            (0.4375, 0.478, 0.0402, 0.0307),
            0.0479,
            (0.45893, 0.32187, 0.596),
            (0.5409, 0.3928, 0.0664),
        ),
        (numbers, (0.6892, 0.7254, 0.0361, 0.0), 4.289e-05, None, (0.8518, 0.1482)),
    ],
)
def test_what_is_predicted_of_fixed_reports_stays_as_it_is(told, figures, p_value, best, says):
    found = told_of(*told())
    assert (found.majority, found.independent, found.gain, found.gain_error) == pytest.approx(figures, abs=2e-4)
    assert found.p_value == pytest.approx(p_value, rel=0.01)
    assert tuple(found.says.values()) == pytest.approx(says, abs=2e-4)
    one = found.best_feature
    assert (one and (one.accuracy, one.low, one.high)) == (best and pytest.approx(best, abs=2e-5))
    assert one is None or one.feature == "x0"


@pytest.mark.parametrize(
    ("p_value", "gain", "error", "above"),
    [(0.015, 0.021, 0.01, True), (0.0151, 0.021, 0.01, False), (0.0, 0.02, 0.01, False), (0.0, -0.1, 0.0, False)],
)
def test_better_is_said_where_features_tell_something_and_enough_of_it(p_value, gain, error, above):
    assert PredictedAccuracy(0.5, 0.6, gain, error, p_value, None, {}).tells_something is above


def test_without_a_report_features_tell_nothing():
    campaign = campaign_of(2)
    assert told_of(campaign, Tally(campaign)).p_value == 1.0


def test_an_accuracy_and_its_interval_are_shares():
    campaign, table = campaign_of(1, epsilon=0.2), np.array([[0.9, 0.1], [0.1, 0.9]])
    for seed in range(5):
        found = told_of(campaign, drawn(campaign, [0.5, 0.5], [table], 60, seed)).best_feature
        assert (found.low, found.high) == (0.0, 1.0)


def test_every_record_has_a_class_also_where_shares_add_up_to_a_little_less_than_one():
    class Last:
        def random(self):
            return 1 - 2**-53

    classes = expected_accuracy._classes(np.array([0.5, 0.5 - 1e-12]), 4, Last())
    assert classes.tolist() == [0, 0, 1, 1]


def test_drawn_numbers_stay_within_their_bounds():
    """The likelihood is clipped at 1, as a device clips: of 2 in every draw all are 1, a class's density there."""
    [feature] = Campaign.compile(draft(number("g", 0, 1))).features
    likelihood = GaussianLikelihood(feature.number, (2.0, 0.0), (1e-6, 1.0))
    terms = expected_accuracy._gaussian_terms(likelihood, np.zeros((1, 3), dtype=int), np.random.default_rng(0))
    assert terms[1] == pytest.approx(np.full((1, 3), -0.5))
