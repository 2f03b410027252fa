"""The shrinking estimator and its prior of effects, beside dense references, at its ends, and what it gains."""

from dataclasses import replace

import numpy as np
import pytest
from drafts import draft, text

from ldp_aggregator.estimation import posterior as tables
from ldp_aggregator.estimation.effects import (
    SCALES,
    USUAL,
    gains,
    ordered_factor,
    scale_logarithms,
)
from ldp_aggregator.estimation.estimators import estimate_question
from ldp_aggregator.estimation.evidence import (
    FeatureGroup,
    Statistics,
    absences,
    contrasts,
    covariance_of_cells,
    factor,
    information_of_cells,
    kron,
    product,
    shared_scales,
    told_of_classes,
    unit_variance,
)
from ldp_aggregator.estimation.posterior import posterior_of
from ldp_aggregator.estimation.simplex import norm_sub
from ldp_aggregator.mechanisms import analysis_of
from ldp_protocols import Campaign
from ldp_protocols.mechanisms import DISCRETE

MOST_MISSING = 0.98


def campaign_of(values=(2, 3), classes=2, epsilon=1.0, discrete="ss", *, missing=False):
    """Features ``x0``, ``x1``, ... of so many values each, all of which may be missing or none."""
    features = [text(f"x{n}", *(f"v{i}" for i in range(size)), missing=missing) for n, size in enumerate(values)]
    label = {"name": "y", "classes": [f"c{i}" for i in range(classes)]}
    return Campaign.compile(draft(*features, label=label, privacy={"epsilon": epsilon, "discrete": discrete}))


def reported(campaign, joints, n, rng):
    """Estimates of all questions, n reports each; ``joints`` are the cells of every feature, the label's first."""
    found = []
    for question, joint in zip(campaign.questions, joints, strict=True):
        counts = analysis_of(question.mechanism).tally(rng.multinomial(n, joint), rng)
        found.append(estimate_question(question, n, np.asarray(counts), len(campaign.label.classes), "none"))
    return found


def population(campaign, rng):
    """Class shares, and a joint table for every feature."""
    prior = rng.dirichlet(np.full(len(campaign.label.classes), 5.0))
    tables = [rng.dirichlet(np.ones(feature.size), size=prior.size).T for feature in campaign.asked]
    return prior, tables, [prior, *((table * prior).ravel() for table in tables)]


def believed_scales(information, effects):
    """P(tau | reports) of features, each of a shape of its own, shape (features, scales)."""
    logarithms = [scale_logarithms(*its)[None] for its in zip(information, effects, strict=True)]
    return np.concatenate(shared_scales(logarithms, USUAL))


def believed(campaign, found, *, in_order=False):
    features = [replace(one, ordered=in_order) for one in campaign.asked]
    return posterior_of(features, len(campaign.label.classes), found, found)


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
    campaign = campaign_of((3,), discrete=name, epsilon=epsilon)
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


@pytest.mark.parametrize("name", ["ss", "oue", "she"])
def test_the_covariance_of_sums_of_cells_is_that_of_the_cells_added_up(name):
    question = campaign_of((5,), discrete=name, epsilon=2.0).questions[1]
    frequencies = np.random.default_rng(4).dirichlet(np.ones(10))
    adding = np.zeros((4, 10))
    adding[[0, 0, 0, 1, 2, 2, 3, 3, 3, 3], range(10)] = 1
    told = covariance_of_cells(question, adding @ frequencies, adding.sum(axis=1))
    assert told == pytest.approx(adding @ covariance_of_cells(question, frequencies) @ adding.T, rel=1e-9)


def test_evidence_adds_up_over_campaigns_and_mechanisms():
    rng = np.random.default_rng(1)
    rounds = [campaign_of(discrete=name, epsilon=epsilon) for name, epsilon in (("ss", 1.0), ("oue", 2.0))]
    _, _, joints = population(rounds[0], rng)
    found = [reported(one, joints, 500, rng) for one in rounds]
    for place, cells in ((1, 4), (2, 6)):
        asked = [one[place] for one in found]
        alone = [FeatureGroup(["x"], [[one]], cells, False, False).evidence() for one in asked]
        together = FeatureGroup(["x"], [asked], cells, False, False).evidence()
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
    campaign = campaign_of((2, 3, 5), classes=3, epsilon=2.0, discrete=discrete)
    rng = np.random.default_rng(7)
    prior, tables, joints = population(campaign, rng)
    posterior = believed(campaign, reported(campaign, joints, 100_000_000, rng))
    assert posterior.classes.value == pytest.approx(prior, abs=2e-3)
    for table, feature in zip(tables, posterior.features.values(), strict=True):
        assert feature.table == pytest.approx(table, abs=0.01)


def test_without_reports_nothing_is_believed_and_with_any_the_tables_are_probabilities_and_nothing_is_impossible():
    campaign, rng = campaign_of((2, 9, 3), classes=4), np.random.default_rng(9)
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
    campaign = campaign_of((3,) * 12)
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
    campaign = campaign_of((3,))
    rng = np.random.default_rng(4)
    _, _, joints = population(campaign, rng)
    (feature,) = believed(campaign, reported(campaign, joints, 2000, rng)).features.values()
    drawn = feature.draw(200_000, rng)
    error = drawn.std(axis=0) / np.sqrt(len(drawn))
    assert (np.abs(drawn.mean(axis=0) - feature.mean) < 5 * error).all()


@pytest.mark.parametrize("place", [0, 5, 10])
def test_drawn_effects_vary_by_what_reports_leave_unknown_at_their_scale(place):
    """tau / (1 + tau S) of each direction, of 50,000 draws to 3 %: five standard errors."""
    campaign = campaign_of((3,))
    rng = np.random.default_rng(4)
    _, _, joints = population(campaign, rng)
    (feature,) = believed(campaign, reported(campaign, joints, 2000, rng)).features.values()
    sure = replace(feature, scales=np.eye(11)[place])
    tau = (10**-4.5, 10**-2, 10**0.5)[place // 5]
    assert SCALES[place] == pytest.approx(tau)
    variances = tau / (1 + tau * feature.information)
    found = np.cov(sure.draw(50_000, rng).T)
    assert found.diagonal() == pytest.approx(variances, rel=0.03)
    assert np.abs(found - np.diag(found.diagonal())).max() < 0.03 * variances.max()


MANY = np.array(1e12)
"""Reports without noise with which a marginal is known."""


def bells(values, *centres):
    """P(value | class), shape (values, classes): discretised normal distributions."""
    table = np.exp(-0.5 * ((np.arange(values)[:, None] - np.array(centres)) / (values / 6)) ** 2)
    return table / table.sum(axis=0)


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
    assert covariance == pytest.approx(covariance[::-1, ::-1]), "the other way round is the same order"


@pytest.mark.parametrize("size", [2, 3, 8, 40])
def test_the_largest_and_the_mean_variance_of_a_direction_make_those_of_a_feature_without_order(size):
    """But for the tenth that is a value's own: the geometric mean of the two is 1."""
    shares = np.random.default_rng(size).dirichlet(np.ones(size))
    root = np.linalg.lstsq(factor(shares), ordered_factor(shares, MANY), rcond=None)[0]
    smooth = (np.linalg.eigvalsh(root @ root.T) - 0.1) / 0.9
    assert smooth.max() * smooth.mean() == pytest.approx(1.0)
    assert smooth.min() > -1e-9


def test_the_table_is_that_of_a_dense_gaussian_posterior():
    campaign, rng = campaign_of((8,), classes=3), np.random.default_rng(1)
    prior = np.array([0.5, 0.3, 0.2])
    found = reported(campaign, [prior, (bells(8, 2, 4, 5) * prior).ravel()], 4000, rng)
    (feature,) = believed(campaign, found, in_order=True).features.values()
    design = kron(ordered_factor(feature.marginal, feature.effective), factor(feature.classes))
    information, linear = feature.statistics.information, feature.statistics.linear
    left = linear - information @ product(feature.marginal, feature.classes)
    dense = sum(
        share * design @ np.linalg.solve(design.T @ information @ design + np.eye(14) / scale, design.T @ left)
        for share, scale in zip(feature.scales, SCALES, strict=True)
    )
    assert feature.basis @ feature.mean == pytest.approx(dense, abs=1e-12)


def test_where_values_have_an_order_fewer_reports_tell_as_much():
    """Thirty models of five features: the square of what a difference of classes is off by is a seventh less."""
    campaign, prior = campaign_of((8,) * 5), np.array([0.6, 0.4])
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


@pytest.mark.parametrize("share", [0.02, 0.05])
def test_a_rare_class_that_looks_like_the_others_is_hardly_ever_said(share):
    """Twelve models of reports that tell nothing say it of a record in a thousand at most."""
    campaign, prior = campaign_of([VALUES] * FEATURES), np.array([1 - share, share])
    said = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        values = [rng.dirichlet(np.ones(VALUES)) for _ in range(FEATURES)]
        found = reported(campaign, [prior, *(product(one, prior) for one in values)], 4_000, rng)
        posterior = believed(campaign, found)
        scores = np.tile(np.log(posterior.classes.value), (4_000, 1))
        for shares, feature in zip(values, posterior.features.values(), strict=True):
            scores += np.log(feature.table)[rng.choice(VALUES, p=shares, size=len(scores))]
        said.append((scores.argmax(axis=1) == 1).mean())
    assert np.mean(said) < 0.003


PRIOR = np.array([0.3, 0.7])
TABLE = np.array([[0.5, 0.2], [0.3, 0.3], [0.2, 0.5]])
"""P(value | class) of every feature."""


def answers(missing, n, seed, epsilon=1.0):
    """A campaign and what is told of it, n reports a question; ``missing`` is P(missing | class), shape (C,)."""
    campaign = campaign_of([VALUES] * FEATURES, epsilon=epsilon, missing=True)
    cells = (np.vstack([TABLE * (1 - missing), missing]) * PRIOR).ravel()
    return campaign, reported(campaign, [PRIOR, *[cells] * FEATURES], n, np.random.default_rng(seed))


def test_where_nothing_is_missing_a_model_is_nearly_the_one_of_who_knows_that(monkeypatch):
    """The same reports, believed with and without that knowledge, of a hundred and of ten thousand a feature."""
    for n in (100, 10_000):
        campaign, found = answers(np.zeros(2), n, seed=n)
        unknowing = believed(campaign, found)
        with monkeypatch.context() as known:
            known.setattr(tables, "absences", lambda told, pi: [0 * one for one in absences(told, pi)])
            knowing = believed(campaign, found)
        for name, feature in unknowing.features.items():
            assert feature.table == pytest.approx(knowing.features[name].table, abs=0.015)
            assert feature.present > 0.95


@pytest.mark.parametrize("missing", [[0.05, 0.05], [0.4, 0.05], [0.9, 0.5]])
def test_what_is_missing_is_found_class_by_class_and_the_tables_are_of_the_others(missing):
    posterior = believed(*answers(np.array(missing), 400_000, seed=3, epsilon=4.0))
    for one in posterior.features.values():
        assert one.absence / posterior.classes.value == pytest.approx(missing, abs=0.015)
        assert one.table == pytest.approx(TABLE, abs=0.04)
        cells = one.cells_of(one.mean[None])[0]
        assert cells.sum(axis=0) == pytest.approx(1)
        assert cells[-1] == pytest.approx(missing, abs=0.015)


def test_without_reports_and_where_everything_is_missing_somebody_is_taken_to_hold_a_value():
    (nothing,) = absences([Statistics(np.zeros((1, 8, 8)), np.zeros((1, 8)))], PRIOR)
    assert (nothing >= 0).all()
    assert nothing.sum() < 0.5
    campaign, found = answers(np.ones(2), 100_000, seed=5, epsilon=4.0)
    group = FeatureGroup(list("abcdefgh"), [[one] for one in found if one.question.feature], 8, True, False)
    (every,) = absences([group.evidence()], PRIOR)
    assert (every <= MOST_MISSING * PRIOR).all()
    assert (every.sum(axis=1) > 0.95).all()
    learned = [one.table for one in believed(campaign, found).features.values()]
    assert all(np.isfinite(table).all() and (table > 0).all() for table in learned)
