"""Values in their order: the prior of their effects, the estimator beside a dense reference, and what it gains."""

from dataclasses import replace

import numpy as np
import pytest
from reported import complete_campaign, reported

from ldp_aggregator.estimation.estimators import estimate_question
from ldp_aggregator.estimation.posterior.effects import SCALES, ordered_factor
from ldp_aggregator.estimation.posterior.evidence import factor, kron, product
from ldp_aggregator.estimation.posterior.tables import posterior_of

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
