"""The shrinking estimator, beside a dense reference, and at its ends: no reports, and endlessly many."""

from fractions import Fraction

import numpy as np
import pytest
from reported import complete_campaign, reported

from ldp_aggregator.estimation.estimators import estimate_question
from ldp_aggregator.estimation.posterior.effects import SCALES, USUAL, gains, scale_logarithms
from ldp_aggregator.estimation.posterior.evidence import (
    FeatureGroup,
    contrasts,
    factor,
    information_of_cells,
    kron,
    product,
    shared_scales,
    told_of_classes,
    unit_variance,
)
from ldp_aggregator.estimation.posterior.tables import posterior_of
from ldp_aggregator.estimation.simplex import norm_sub
from ldp_aggregator.mechanisms import analysis_of
from protocols.mechanisms import DISCRETE


def population(campaign, rng):
    """Class shares, and a joint table for every feature."""
    prior = rng.dirichlet(np.full(len(campaign.label.classes), 5.0))
    tables = [rng.dirichlet(np.ones(feature.size), size=prior.size).T for feature in campaign.asked]
    return prior, tables, [prior, *((table * prior).ravel() for table in tables)]


def believed_scales(information, effects):
    """P(tau | reports) of features, each of a shape of its own, shape (features, scales)."""
    logarithms = [scale_logarithms(*its)[None] for its in zip(information, effects, strict=True)]
    return np.concatenate(shared_scales(logarithms, USUAL))


def believed(campaign, found):
    return posterior_of(campaign.asked, len(campaign.label.classes), found, found)


@pytest.mark.parametrize("size", [2, 3, 7])
def test_a_factor_gives_the_covariance_of_one_draw(size):
    shares = np.random.default_rng(size).dirichlet(np.ones(size))
    made = factor(shares)
    assert made.shape == (size, size - 1)
    assert made @ made.T == pytest.approx(np.diag(shares) - np.outer(shares, shares), abs=1e-14)
    assert contrasts(size).T @ contrasts(size) == pytest.approx(np.eye(size - 1), abs=1e-14)
    assert kron(made, made) == pytest.approx(np.kron(made, made))
    assert product(shares, shares) == pytest.approx(np.kron(shares, shares))


@pytest.mark.parametrize(("name", "epsilon"), [("ss", 0.5), ("de", 3.0), ("oue", 2.0), ("she", 2.0)])
def test_the_information_of_cells_is_the_inverse_of_the_covariance_that_is_seen(name, epsilon):
    """1,500 estimates: an information is off by 3.7 % (one standard error); 20 of them within 18 % fail 1 in 40,000."""
    campaign = complete_campaign((3,), discrete=name, epsilon=epsilon)
    question = campaign.questions[1]
    rng, n, values = np.random.default_rng(3), 50, []
    joint = rng.dirichlet(np.full(6, 2.0))
    for _ in range(1_500):
        counts = analysis_of(question.mechanism).tally(rng.multinomial(n, joint), rng)
        values.append(estimate_question(question, n, np.asarray(counts), 2, "none").cells.value)
    basis = contrasts(6)
    seen = np.linalg.inv(basis.T @ np.cov(np.array(values).T) @ basis)
    told = basis.T @ information_of_cells(question, n, joint) @ basis
    assert told.diagonal() == pytest.approx(seen.diagonal(), rel=0.18)
    even = information_of_cells(question, n, np.full(6, 1 / 6))
    assert even == pytest.approx(information_of_cells(question, n), abs=1e-9 * n)
    assert np.trace(even) == pytest.approx(5 * n / unit_variance(question.mechanism))


def test_for_subset_selection_the_unit_variance_is_the_published_formula():
    mechanism = DISCRETE["ss"].make(10, Fraction(1, 2))
    w, d, p, q = mechanism.subset_size, 10, float(mechanism.p), float(mechanism.q)
    campaign = complete_campaign((5,), epsilon=0.5)
    expected = w / d * (1 - (w - 1) / (d - 1)) / (p - q) ** 2
    assert unit_variance(campaign.questions[1].mechanism) == pytest.approx(expected, rel=1e-9)


def test_evidence_adds_up_over_campaigns_and_mechanisms():
    rng = np.random.default_rng(1)
    rounds = [complete_campaign(discrete=name, epsilon=epsilon) for name, epsilon in (("ss", 1.0), ("oue", 2.0))]
    _, _, joints = population(rounds[0], rng)
    found = [reported(one, joints, 500, rng) for one in rounds]
    for place, cells in ((1, 4), (2, 6)):
        asked = [one[place] for one in found]
        alone = [FeatureGroup(["x"], [[one]], cells, False, False).told() for one in asked]
        together = FeatureGroup(["x"], [asked], cells, False, False).told()
        assert together.linear == pytest.approx(alone[0].linear + alone[1].linear)
        assert together.information == pytest.approx(alone[0].information + alone[1].information)
    of_classes = told_of_classes(found[0] + found[1], 2).information
    assert of_classes == pytest.approx(np.concatenate([told_of_classes(one, 2).information for one in found]))


def test_the_scales_posterior_is_that_of_a_dense_gaussian():
    """Y ~ N(0, S + tau S^2) for a feature with S known."""
    rng = np.random.default_rng(2)
    information = [rng.uniform(1, 50, size) for size in (2, 5, 1)]
    effects = [rng.normal(0, np.sqrt(s + 0.1 * s**2)) for s in information]
    found = believed_scales(information, effects)

    def logarithm(t, s, y):
        """Return ln of the density at tau = t over that at tau = 0."""
        return 0.5 * (np.log(s) + y**2 / s - np.log(s + t * s**2) - y**2 / (s + t * s**2)).sum()

    logs = np.array([[logarithm(t, s, y) for t in SCALES] for s, y in zip(information, effects, strict=True)])
    weights = USUAL
    for _ in range(50):
        posterior = np.exp(logs) * weights
        posterior /= posterior.sum(axis=1, keepdims=True)
        weights = (posterior.sum(axis=0) + 2 * USUAL) / (len(information) + 2)
    dense = np.exp(logs) * weights
    assert found == pytest.approx(dense / dense.sum(axis=1, keepdims=True), rel=1e-9)
    assert shared_scales([], USUAL) == []


def test_where_reports_tell_nothing_scales_are_the_usual_ones_and_where_they_tell_it_what_they_tell():
    assert USUAL.sum() == pytest.approx(1)
    nothing = believed_scales([np.zeros(3)] * 4, [np.zeros(3)] * 4)
    assert nothing == pytest.approx(np.tile(USUAL, (4, 1)))
    rng, information = np.random.default_rng(5), [np.full(2, 1e5)] * 60
    for scale in (1e-4, 1e-2, 1.0):
        effects = [rng.normal(0, np.sqrt(s + scale * s**2)) for s in information]
        found = believed_scales(information, effects).mean(axis=0)
        assert np.exp(found @ np.log(SCALES)) == pytest.approx(scale, rel=0.5)


def test_noise_alone_is_not_taken_for_effects_that_no_table_has():
    """Thirty features of nine coordinates that tell nothing, with hardly a report to each: what is believed of their
    effects, |z|^2, is 0.02 on average; it would be 0.1, the effect of a good feature, were all scales as frequent.
    """
    believed = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        information = [np.full(9, 0.3)] * 6
        effects = [rng.normal(0, np.sqrt(0.3), 9) for _ in information]
        for effect, found in zip(effects, believed_scales(information, effects), strict=True):
            mean = found @ gains(np.full(9, 0.3)) * effect
            believed.append(mean @ mean)
    assert np.mean(believed) < 0.04


@pytest.mark.parametrize("discrete", sorted(DISCRETE))
def test_with_endlessly_many_reports_the_tables_are_the_population(discrete):
    campaign = complete_campaign((2, 3, 5), classes=3, epsilon=2.0, discrete=discrete)
    rng = np.random.default_rng(7)
    prior, tables, joints = population(campaign, rng)
    posterior = believed(campaign, reported(campaign, joints, 100_000_000, rng))
    assert posterior.classes.value == pytest.approx(prior, abs=2e-3)
    for table, feature in zip(tables, posterior.features.values(), strict=True):
        assert feature.table == pytest.approx(table, abs=0.01)


def test_without_reports_nothing_is_believed_and_with_any_the_tables_are_probabilities_and_nothing_is_impossible():
    campaign, rng = complete_campaign((2, 9, 3), classes=4), np.random.default_rng(9)
    _, _, joints = population(campaign, rng)
    posterior = believed(campaign, reported(campaign, joints, 0, rng))
    assert posterior.classes.value == pytest.approx(np.full(4, 1 / 4))
    for size, feature in zip((2, 9, 3), posterior.features.values(), strict=True):
        assert feature.table == pytest.approx(np.full((size, 4), 1 / size))
        assert feature.mean == pytest.approx(0)
    for n in (1, 3, 40, 3000):
        posterior = believed(campaign, reported(campaign, joints, n, rng))
        assert posterior.classes.value.min() > 0
        for feature in posterior.features.values():
            assert feature.table.min() > 0
            assert feature.table.sum(axis=0) == pytest.approx(np.ones(4))


def test_what_is_believed_is_nearer_to_the_truth_than_the_nearest_probabilities():
    """Twelve features, of which one tells the class: 20 populations, seeded; the mean error is below three quarters."""
    campaign = complete_campaign((3,) * 12)
    rng = np.random.default_rng(11)
    shrunk, nearest = 0.0, 0.0
    for _ in range(20):
        prior = np.array([0.6, 0.4])
        tables = [np.repeat(rng.dirichlet(np.full(3, 4.0))[:, None], 2, axis=1) for _ in range(12)]
        tables[0] = np.array([[0.7, 0.1], [0.2, 0.3], [0.1, 0.6]])
        found = reported(campaign, [prior, *((table * prior).ravel() for table in tables)], 4000, rng)
        posterior = believed(campaign, found)
        for table, feature, one in zip(tables, posterior.features.values(), found[1:], strict=True):
            joint = norm_sub(one.cells.value).reshape(3, 2)
            shrunk += np.abs(feature.table - table).sum()
            nearest += np.abs(joint / joint.sum(axis=0) - table).sum()
    assert shrunk < nearest * 3 / 4


def test_a_drawn_effect_has_the_mean_that_is_told():
    """200,000 draws: five standard errors."""
    campaign = complete_campaign((3,))
    rng = np.random.default_rng(4)
    _, _, joints = population(campaign, rng)
    (feature,) = believed(campaign, reported(campaign, joints, 2000, rng)).features.values()
    drawn = feature.draw(200_000, rng)
    error = drawn.std(axis=0) / np.sqrt(len(drawn))
    assert (np.abs(drawn.mean(axis=0) - feature.mean) < 5 * error).all()
