"""Values in their order: the prior of their effects, the estimator beside a dense reference, and what it gains."""

from dataclasses import replace

import numpy as np
import pytest
from drafts import draft, text
from reported import complete_campaign, reported
from sklearn.metrics import roc_auc_score

from ldp_aggregator.estimation.estimators import estimate_question
from ldp_aggregator.estimation.posterior import tables
from ldp_aggregator.estimation.posterior.effects import SCALES, centre, likeness, ordered_factor, rarity
from ldp_aggregator.estimation.posterior.evidence import (
    MOST_MISSING,
    FeatureGroup,
    Statistics,
    absences,
    factor,
    kron,
    product,
)
from ldp_aggregator.estimation.posterior.tables import posterior_of
from ldp_aggregator.estimation.simplex import norm_sub
from ldp_aggregator.mechanisms import analysis_of
from protocols import Campaign

MANY = np.array(1e12)
"""Reports without noise with which a marginal is known."""


def bells(values, *centres):
    """P(value | class), shape (values, classes): discretised normal distributions."""
    table = np.exp(-0.5 * ((np.arange(values)[:, None] - np.array(centres)) / (values / 6)) ** 2)
    return table / table.sum(axis=0)


def believed(campaign, found, *, in_order=True):
    features = [replace(one, ordered=in_order) for one in campaign.asked]
    return posterior_of(features, len(campaign.label.classes), found, found)


def test_two_values_have_no_order_and_where_the_values_are_not_known_none_is_believed():
    shares = np.array([0.3, 0.7])
    assert ordered_factor(shares, MANY) == pytest.approx(factor(shares))
    shares = np.random.default_rng(1).dirichlet(np.ones(8))
    covariance = [made @ made.T for made in (ordered_factor(shares, np.array(0.0)), factor(shares))]
    assert covariance[0] == pytest.approx(covariance[1])


@pytest.mark.parametrize("size", [3, 8, 40])
def test_a_priori_the_effects_of_neighbours_are_alike_and_those_of_distant_values_are_not(size):
    shares = np.full(size, 1 / size)
    spread = ordered_factor(shares, MANY) / shares[:, None]
    covariance = spread @ spread.T
    beside, apart = np.diagonal(covariance, 1), np.diagonal(covariance, size - 1)
    assert (beside > 0.1 * covariance.diagonal()[:-1]).all() or size == 3
    assert (beside > apart.mean()).all()
    assert covariance.sum(axis=0) == pytest.approx(np.zeros(size), abs=1e-9)  # Effects add up to nothing.


@pytest.mark.parametrize("size", [2, 3, 8, 40])
def test_the_largest_and_the_mean_variance_of_a_direction_make_those_of_a_feature_without_order(size):
    """But for the tenth that is a value's own: the geometric mean of the two is 1."""
    shares = np.random.default_rng(size).dirichlet(np.ones(size))
    root = np.linalg.lstsq(factor(shares), ordered_factor(shares, MANY), rcond=None)[0]
    smooth = (np.linalg.eigvalsh(root @ root.T) - 0.1) / 0.9
    assert smooth.max() * smooth.mean() == pytest.approx(1.0)
    assert smooth.min() > -1e-9


def test_the_table_is_that_of_a_dense_gaussian_posterior():
    campaign, rng = complete_campaign((8,), classes=3), np.random.default_rng(1)
    prior = np.array([0.5, 0.3, 0.2])
    found = reported(campaign, [prior, (bells(8, 2, 4, 5) * prior).ravel()], 4000, rng)
    (feature,) = believed(campaign, found).features.values()
    design = kron(ordered_factor(feature.marginal, feature.effective), factor(feature.classes))
    information, linear = feature.told.information, feature.told.linear
    left = linear - information @ product(feature.marginal, feature.classes)
    dense = sum(
        share * design @ np.linalg.solve(design.T @ information @ design + np.eye(14) / scale, design.T @ left)
        for share, scale in zip(feature.scales, SCALES, strict=True)
    )
    assert feature.basis @ feature.mean == pytest.approx(dense, abs=1e-12)


def test_the_other_way_round_is_the_same_order():
    campaign = complete_campaign((8,))
    (question,) = (one for one in campaign.questions if one.feature == "x0")
    counts = np.random.default_rng(2).integers(900, 1300, size=(8, 2))
    label = estimate_question(campaign.questions[0], 4000, np.array([2300, 1700]), 2, "none")
    tables = []
    for turned in (counts, counts[::-1]):
        found = [label, estimate_question(question, 4000, turned.ravel().copy(), 2, "none")]
        (feature,) = believed(campaign, found).features.values()
        tables.append(feature.table)
    assert tables[1] == pytest.approx(tables[0][::-1])


def test_where_values_have_an_order_fewer_reports_tell_as_much():
    """Thirty models of five features: the square of what a difference of classes is off by is a seventh less."""
    campaign, prior = complete_campaign((8,) * 5), np.array([0.6, 0.4])
    tables = [bells(8, 2 + shift, 4 + shift) for shift in (0, 0.5, 1, 1.5, 2)]
    joints = [prior, *((table * prior).ravel() for table in tables)]
    off = {True: 0.0, False: 0.0}
    for seed in range(30):
        found = reported(campaign, joints, 5_000, np.random.default_rng(seed))
        for in_order in off:
            fitted = believed(campaign, found, in_order=in_order).features.values()
            for table, feature in zip(tables, fitted, strict=True):
                off[in_order] += float((np.diff(feature.table - table, axis=1) ** 2).sum())
    assert off[True] < 0.86 * off[False]


VALUES, FEATURES = 3, 8


def test_a_class_of_a_tenth_is_rare_and_one_of_a_third_and_even_classes_are_not():
    for classes in (2, 5, 26):
        assert not rarity(np.full(classes, 1 / classes)).any()
    assert rarity(np.array([0.9, 0.1])).tolist() == [0, 1]
    assert rarity(np.array([0.66, 0.34])).tolist() == [0, 0]


@pytest.mark.parametrize("alike", [0.0, 0.5, 1.0])
def test_the_centres_mix_to_the_marginal_and_those_of_rare_classes_lie_towards_even_values(alike):
    marginal, classes = np.array([0.7, 0.2, 0.1]), np.array([0.95, 0.05])
    told = centre(marginal, classes, alike)
    assert told @ classes == pytest.approx(marginal)
    assert told.sum(axis=0) == pytest.approx([1, 1])
    assert told[:, 1] == pytest.approx(alike * marginal + (1 - alike) / 3)


def test_likeness_is_learned_from_effects_that_are_too_small_or_too_large():
    information = [np.full((3, 20), 100.0)] * 2
    near, far = np.zeros((3, 20)), np.full((3, 20), 40.0)
    assert likeness(information, [[far] * 2] * 4 + [[near] * 2]) == pytest.approx(1, abs=1e-3)
    assert likeness(information, [[near] * 2] + [[far] * 2] * 4) == pytest.approx(0, abs=1e-3)
    assert likeness(information, [[near] * 2] * 5) == pytest.approx(0.5)


def learned(campaign, prior, reports, rng):
    """Tables of a population, its estimates, and the tables that are learned from these."""
    truth = [rng.dirichlet(np.ones(VALUES), 2).T for _ in range(FEATURES)]
    told = reported(campaign, [prior, *((one * prior).ravel() for one in truth)], reports, rng)
    return truth, told, [one.table for one in posterior_of(campaign.asked, 2, told, told).features.values()]


def ranked(prior, tables, cells):
    """AUC of the rare class among people who are as ``cells`` say."""
    rng = np.random.default_rng(9)
    rare = rng.random(20_000) < prior[1]
    scores = np.zeros(len(rare))
    for truth, table in zip(cells, tables, strict=True):
        values = (rng.random(len(rare))[:, None] > np.cumsum(truth, axis=0).T[rare.astype(int)][:, :-1]).sum(axis=1)
        scores += np.log(table[values, 1] / table[values, 0])
    return roc_auc_score(rare, scores)


@pytest.mark.parametrize("share", [0.02, 0.05])
def test_a_rare_class_of_which_little_is_known_is_ranked_as_well_as_by_nearest_probabilities(share):
    campaign, prior = complete_campaign([VALUES] * FEATURES), np.array([1 - share, share])
    of_posterior, of_base = [], []
    for seed in range(12):
        truth, told, tables = learned(campaign, prior, 4_000, np.random.default_rng(seed))
        of_posterior.append(ranked(prior, tables, truth))
        base = [(norm_sub(one.cells.value) * one.n + 1).reshape(-1, 2) for one in told[1:]]
        of_base.append(ranked(prior, [one / one.sum(axis=0) for one in base], truth))
    assert np.mean(of_posterior) > np.mean(of_base)


def test_with_many_reports_the_centre_does_not_matter():
    campaign, prior = complete_campaign([VALUES] * FEATURES, epsilon=4.0), np.array([0.97, 0.03])
    truth, _, tables = learned(campaign, prior, 5_000_000, np.random.default_rng(1))
    for found, table in zip(tables, truth, strict=True):
        assert found == pytest.approx(table, abs=0.02)


ABSENT_FEATURES = [text(f"x{i}", "v0", "v1", "v2", missing=True) for i in range(8)]
TABLE = np.array([[0.5, 0.2], [0.3, 0.3], [0.2, 0.5]])
"""P(value | class) of every feature."""


def campaign_of(features=ABSENT_FEATURES, epsilon=1.0):
    return Campaign.compile(draft(*features, privacy={"epsilon": epsilon, "discrete": "ss"}))


def answers(campaign, missing, n, seed):
    """Estimates of all questions, n reports each; ``missing`` is P(missing | class), shape (C,)."""
    rng = np.random.default_rng(seed)
    prior = np.array([0.3, 0.7])
    found = []
    for question in campaign.questions:
        joint = prior
        if question.feature is not None:
            joint = (np.vstack([TABLE * (1 - missing), missing]) * prior).ravel()
        counts = analysis_of(question.mechanism).tally(rng.multinomial(n, joint), rng)
        found.append(estimate_question(question, n, np.asarray(counts), 2, "none"))
    return found


def test_where_nothing_is_missing_a_model_is_nearly_the_one_of_who_knows_that(monkeypatch):
    """The same reports, believed with and without that knowledge, of a hundred and of ten thousand a feature."""
    campaign = campaign_of()
    for n in (100, 10_000):
        found = answers(campaign, np.zeros(2), n, seed=n)
        believed = posterior_of(campaign.asked, 2, found, found)
        with monkeypatch.context() as known:
            known.setattr(tables, "absences", lambda told, pi: [0 * one for one in absences(told, pi)])
            knowing = posterior_of(campaign.asked, 2, found, found)
        for name in believed.features:
            assert believed.features[name].table == pytest.approx(knowing.features[name].table, abs=0.015)
            assert believed.features[name].present > 0.95


@pytest.mark.parametrize("missing", [[0.05, 0.05], [0.4, 0.05], [0.9, 0.5]])
def test_what_is_missing_is_found_class_by_class_and_the_tables_are_of_the_others(missing):
    campaign = campaign_of(epsilon=4.0)
    found = answers(campaign, np.array(missing), 400_000, seed=3)
    believed = posterior_of(campaign.asked, 2, found, found)
    for one in believed.features.values():
        assert one.absence / believed.classes.value == pytest.approx(missing, abs=0.015)
        assert one.table == pytest.approx(TABLE, abs=0.04)
        cells = one.cells_of(one.mean[None])[0]
        assert cells.sum(axis=0) == pytest.approx(1)
        assert cells[-1] == pytest.approx(missing, abs=0.015)


def test_without_reports_and_where_everything_is_missing_somebody_is_taken_to_hold_a_value():
    classes = np.array([0.3, 0.7])
    (nothing,) = absences([Statistics(np.zeros((1, 8, 8)), np.zeros((1, 8)))], classes)
    assert (nothing >= 0).all()
    assert nothing.sum() < 0.5
    campaign = campaign_of(epsilon=4.0)
    found = answers(campaign, np.ones(2), 100_000, seed=5)
    group = FeatureGroup(list("abcdefgh"), [[one] for one in found if one.question.feature], 8, True, False)
    (every,) = absences([group.told()], classes)
    assert (every <= MOST_MISSING * classes).all()
    assert (every.sum(axis=1) > 0.95).all()
    believed = posterior_of(campaign.asked, 2, found, found)
    assert all(np.isfinite(one.table).all() and (one.table > 0).all() for one in believed.features.values())
