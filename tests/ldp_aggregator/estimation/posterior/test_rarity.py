"""Rare classes: ranked as well as by the nearest probabilities at least; with many reports the prior is forgotten."""

import numpy as np
import pytest
from reported import complete_campaign, reported
from sklearn.metrics import roc_auc_score

from ldp_aggregator.estimation.posterior.effects import centre, likeness, rarity
from ldp_aggregator.estimation.posterior.tables import posterior_of
from ldp_aggregator.estimation.simplex import norm_sub

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
