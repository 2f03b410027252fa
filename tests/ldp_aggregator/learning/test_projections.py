"""PCA and DCA from public tables and from private rounds."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from drafts import draft, number
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from ldp_aggregator import Tally, train
from ldp_aggregator.estimation.estimates import estimate
from ldp_aggregator.learning.projections import (
    InputMoments,
    add_to_draft,
    fit_projection,
    moments_of_round,
    moments_of_table,
)
from ldp_protocols import Campaign
from ldp_simulations import simulate

NUMBERS = (number(f"x{i}", high=10 * (i + 1)) for i in range(4))
DRAFT = draft(*NUMBERS, label={"name": "class", "classes": ["a", "b", "c"]}, privacy={"epsilon": 2}, study="s")


def people(n, seed=0):
    """Three classes that differ along one direction of four correlated numbers."""
    rng = np.random.default_rng(seed)
    classes = rng.choice(3, size=n, p=[0.4, 0.35, 0.25])
    mixing = np.array([[1, 0.5, 0, 0], [0, 1, 0.3, 0], [0.2, 0, 1, 0.6], [0, 0, 0, 1]])
    t = 0.18 * rng.normal(size=(n, 4)) @ mixing + np.outer(classes - 0.85, [0.3, 0.0, -0.2, 0.1])
    frame = pd.DataFrame(np.clip((t + 1) / 2, 0, 1) * [10, 20, 30, 40], columns=[f"x{i}" for i in range(4)])
    return frame.assign(**{"class": np.array(list("abc"))[classes]})


def scaled(frame):
    return 2 * frame[[f"x{i}" for i in range(4)]].to_numpy() / [10, 20, 30, 40] - 1


@pytest.fixture(scope="module")
def campaign():
    return Campaign.compile(DRAFT)


def exact(campaign, frame):
    return moments_of_table(campaign.features, campaign.label, frame)


def test_pca_of_a_public_table_is_that_of_scikit_learn_and_dca_spans_what_linear_discriminant_analysis_finds(campaign):
    """Without ridges DCA maximises the same ratio (S_B against the total scatter); two classes' worth of directions."""
    frame = people(5_000)
    moments = exact(campaign, frame)
    ours = np.array(fit_projection(moments, "pca", 4)["matrix"])
    theirs = PCA().fit(scaled(frame)).components_
    assert np.abs((ours * theirs).sum(axis=1)) == pytest.approx(np.ones(4), abs=1e-9)
    ours = np.array(fit_projection(moments, "dca", 2, ridge=0.0)["matrix"])
    theirs = LinearDiscriminantAnalysis(solver="eigen").fit(scaled(frame), frame["class"]).scalings_[:, :2].T
    theirs /= np.linalg.norm(theirs, axis=1, keepdims=True)
    assert np.abs((ours * theirs).sum(axis=1)) == pytest.approx(np.ones(2), abs=1e-6)
    broken = pd.concat([frame, frame.assign(x0=np.nan), frame.assign(**{"class": "z"})])
    assert exact(campaign, broken).mean == pytest.approx(moments.mean), "without an input or a declared class"


def test_outputs_lie_within_their_bounds_and_outputs_of_everything_within_the_hard_ones(campaign):
    frame = people(5_000)
    for spread, share in ((3.0, 0.98), (None, 1.0)):
        projection = fit_projection(exact(campaign, frame), "dca", 2, spread=spread)
        compiled = Campaign.compile(add_to_draft(DRAFT, projection))
        rows = frame.iloc[:500, :4].to_numpy().tolist()
        for position, output in enumerate(compiled.projection.outputs):
            values = [compiled.projection.output(position, row) for row in rows]
            inside = np.mean([output.low <= value <= output.high for value in values])
            assert inside >= share


def test_a_private_round_finds_the_directions_of_the_population(campaign):
    """200,000 devices at epsilon 2: the first direction within 10 degrees, without any raw record."""
    asking = Campaign.compile({**DRAFT, "asks": "moments"})
    frame = people(200_000)
    private = moments_of_round(asking, simulate(asking, frame, frame["class"], rng=1))
    public = exact(campaign, frame)
    assert private.fitted_on == asking.id
    assert np.abs(private.mean - public.mean).max() < 5 * private.noise
    assert np.abs(private.covariance - public.covariance).max() < 6 * private.noise
    for method in ("pca", "dca"):
        ours, theirs = (np.array(fit_projection(m, method, 1)["matrix"])[0] for m in (private, public))
        assert abs(ours @ theirs) > np.cos(np.radians(10)), method


@pytest.fixture(scope="module")
def private_round():
    """A private round of study s at epsilon 2, and its moments."""
    asking = Campaign.compile({**DRAFT, "asks": "moments"})
    frame = people(20_000)
    return asking, moments_of_round(asking, simulate(asking, frame, frame["class"], rng=2))


def test_the_second_round_names_the_first_and_shares_its_study(private_round):
    asking, moments = private_round
    second = add_to_draft({**DRAFT, "study": None}, fit_projection(moments, "dca", 1, bins=6), asking.study)
    campaign = Campaign.compile(second)
    assert (campaign.study, campaign.projection.fitted_on) == ("s", asking.id)
    others = people(20_000, seed=3)
    model = train(campaign, simulate(campaign, others, others["class"], rng=4))
    accuracy = (model.predict(others) == others["class"]).mean()
    assert accuracy > 0.55  # The largest class alone has 0.40.


@pytest.mark.parametrize(
    ("study", "epsilon", "total"), [("s", 1.0, 2.0), ("s", 3.0, 3.0), ("another", 1.0, 3.0), ("another", 3.0, 5.0)]
)
def test_the_guarantee_adds_the_private_round_where_a_device_may_have_answered_both(
    private_round, study, epsilon, total
):
    """The round cost 2. In one study a device answers one of the two, and has lost the larger."""
    _, moments = private_round
    changes = {"projection": fit_projection(moments, "pca", 1), "study": study}
    campaign = Campaign.compile({**DRAFT, **changes, "privacy": {"epsilon": epsilon, "continuous": "sign"}})
    frame = people(500)
    model = train(campaign, simulate(campaign, frame, frame["class"], rng=4))
    assert model.guarantee_.epsilon == total
    assert json.loads(model.to_json())["training"]["guarantee"]["epsilon"] == total


def test_impossible_fits_say_what_would_be_right(campaign):
    frame = people(100)
    moments, asking = exact(campaign, frame), Campaign.compile({**DRAFT, "asks": "moments"})
    for fit, message in (
        (lambda: fit_projection(moments, "pca", 5), "4 inputs have 1 to 4 components, not 5"),
        (
            lambda: fit_projection(moments, "dca", 3),
            "3 classes with enough records differ in 2 directions",
        ),
        (
            lambda: fit_projection(exact(campaign, frame.assign(**{"class": "a"})), "dca", 1),
            "1 classes with enough records differ in 0",
        ),
        (lambda: fit_projection(moments, "ica", 1), "must be one of pca, dca"),
        (lambda: fit_projection(moments, "dca", 1, ridge=-1), "ridges must be at least 0"),
        (lambda: fit_projection(exact(campaign, frame.assign(x1=5.0)), "dca", 1, ridge=0), "use a ridge above 0"),
        (lambda: exact(campaign, frame.assign(x0=np.nan)), "0 of 100 rows"),
        (lambda: exact(campaign, frame.drop(columns="class")), "no column 'class'"),
        (lambda: moments_of_round(campaign, Tally(campaign)), "private round has"),
        (lambda: moments_of_round(asking, Tally(asking)), "have no reports yet"),
        (
            lambda: add_to_draft({**DRAFT, "study": "t"}, fit_projection(moments, "pca", 1), "s"),
            "must be the private round's",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            fit()
    with pytest.raises(ValueError, match="not for a model"):
        train(asking, Tally(asking))


PAIR = draft(
    number("x", 0, 10, missing=True),
    number("y", 0, 20),
    label={"name": "class", "classes": ["a", "b"]},
    privacy={"epsilon": 2},
    study="s",
)


def test_the_moments_of_a_table_are_those_of_its_sound_rows():
    """By hand: t is (-1, 0) and (0, 1) in a, (1, 0) in b."""
    pair = Campaign.compile(PAIR)
    frame = pd.DataFrame(
        {"x": [0, 5, 10, 10, np.nan], "y": [10, 20, 10, 20, 20], "class": ["a", "a", "b", "undeclared", "b"]}
    )
    found = exact(pair, frame)
    assert found.mean == pytest.approx([0, 1 / 3])
    assert found.covariance == pytest.approx(np.array([[2 / 3, 0], [0, 2 / 9]]))
    assert found.between == pytest.approx(np.array([[1 / 2, -1 / 6], [-1 / 6, 1 / 18]]))
    assert (found.noise, found.fitted_study, found.fitted_epsilon) == (0.0, None, None)
    with pytest.raises(ValueError, match="1 of 2 rows have every input"):
        exact(pair, frame.iloc[2:4])


def moments(covariance, mean=(0.0, 0.0), between=((0.0, 0.0), (0.0, 0.0)), noise=0.0, features=PAIR):
    numbers = Campaign.compile(features).features
    return InputMoments(numbers, np.array(mean), np.array(covariance), np.array(between), 2, noise, "public")


def test_bounds_are_three_deviations_within_what_the_inputs_allow():
    """The first direction is x alone, with mean .5 and deviation .1: t - .5 is from -1.5 to .5."""
    made = fit_projection(moments(((0.01, 0), (0, 0)), (0.5, 0)), "pca", 2)
    assert np.array(made["matrix"]) == pytest.approx(np.eye(2))
    bounds = [(one["low"], one["high"]) for one in made["outputs"]]
    assert bounds[0] == pytest.approx((-0.3, 0.3))
    assert bounds[1] == pytest.approx((-1, 1)), "what does not vary has the bounds of its inputs"
    made = fit_projection(moments(((0.09, 0), (0, 0)), (0.5, 0)), "pca", 1)
    assert (made["outputs"][0]["low"], made["outputs"][0]["high"]) == pytest.approx((-0.9, 0.5))
    assert (made["mean"], made["scale"]) == ([7.5, 10.0], [5.0, 10.0]), "in the units of the inputs"
    assert {"fitted_study", "fitted_epsilon"} & set(made) == set(), "nothing private is behind it"


@pytest.mark.parametrize("sign", [1, -1])
def test_of_both_signs_of_a_direction_the_one_with_its_largest_entry_positive_is_taken(sign):
    turned = moments(((1.0, sign * 0.4), (sign * 0.4, 0.3)))
    for method in ("pca", "dca"):
        [direction] = fit_projection(turned, method, 1)["matrix"]
        assert max(direction, key=abs) > 0
    [direction] = fit_projection(turned, "pca", 1)["matrix"]
    assert direction[0] > abs(direction[1]) > 0
    assert np.sign(direction[1]) == sign


def test_an_output_may_be_missing_where_all_of_its_inputs_may():
    for second, expected in ((False, False), (True, True)):
        features = {**PAIR, "features": [PAIR["features"][0], number("y", 0, 20, missing=second)]}
        [output] = fit_projection(moments(np.eye(2), features=features), "pca", 1)["outputs"]
        assert output["missing"] is expected


def test_the_ridge_is_a_thousandth_of_the_mean_variance_or_the_size_of_a_noisy_rounds_noise():
    """The signal is in y, but y hardly varies: a larger ridge turns the direction towards x."""
    noisy = moments(((0.5, 0), (0, 0.01)), between=((0.1, 0), (0, 0.01)))
    firsts = {}
    for noise, ridge in ((0.0, 0.000255), (0.5, 0.5 * 2**0.5)):
        one = replace(noisy, noise=noise)
        firsts[noise] = fit_projection(one, "dca", 1)["matrix"]
        assert firsts[noise] == fit_projection(one, "dca", 1, ridge=ridge)["matrix"]
    assert firsts[0.0][0] == pytest.approx([0, 1])
    assert firsts[0.5][0] == pytest.approx([1, 0])
    for wrong in ({"ridge": -1e-9}, {"signal_ridge": -1e-9}):
        with pytest.raises(ValueError, match="ridges must be at least 0"):
            fit_projection(noisy, "dca", 1, **wrong)


@pytest.mark.parametrize("unit", [1.0, 0.03])
def test_dca_of_a_public_table_is_as_good_however_wide_its_bounds_are(campaign, unit):
    """Bounds that are 33 times too wide make all variances 1,100 times smaller, and the ridge with them."""
    moments = exact(campaign, people(5_000))
    narrow = replace(moments, covariance=unit**2 * moments.covariance, between=unit**2 * moments.between)
    found, best = (np.array(fit_projection(narrow, "dca", 1, ridge=ridge)["matrix"])[0] for ridge in (None, 0.0))

    def separability(direction):
        return (direction @ moments.between @ direction) / (direction @ moments.covariance @ direction)

    assert separability(found) > 0.999 * separability(best)


@pytest.mark.parametrize("study", [None, "s"])
def test_a_draft_of_the_rounds_study_or_of_none_is_of_that_study_afterwards(study):
    made = add_to_draft({**PAIR, "study": study}, fit_projection(moments(np.eye(2)), "pca", 1), "s")
    assert made["study"] == "s"
    assert add_to_draft({**PAIR, "study": "t"}, {}, None)["study"] == "t"


def corners(classes="ab", missing=()):
    """Everybody has x and y at an end: both high in a, x low in b; in ``missing`` nobody has an x."""
    labels = np.array(list(classes) * 30_000)[:30_000]
    x = np.where(labels == "a", 10.0, 0.0)
    x[np.isin(np.arange(30_000) % 4, missing)] = np.nan
    return pd.DataFrame({"x": x, "y": np.full(30_000, 20.0)}), labels


def round_of(frame, labels, rng=1, **privacy):
    asking = Campaign.compile({**PAIR, "asks": "moments", "privacy": {"epsilon": 40, **privacy}})
    return asking, simulate(asking, frame, labels, rng=rng)


@pytest.mark.parametrize("missing", [(), (0, 1)])
def test_a_round_of_which_hardly_any_noise_is_left_finds_the_moments_of_who_holds_a_value(missing):
    """x is 1 in a third and -1 in the others, y is always 1; half of the devices may have no x."""
    asking, tally = round_of(*corners("abb", missing))
    found = moments_of_round(asking, tally)
    assert found.mean == pytest.approx([-1 / 3, 1], abs=0.03)
    assert found.covariance == pytest.approx(np.array([[8 / 9, 0], [0, 0]]), abs=0.05)
    assert found.between == pytest.approx(np.array([[8 / 9, 0], [0, 0]]), abs=0.05)
    assert np.linalg.eigvalsh(found.covariance).min() >= 1e-6 * (1 - 1e-6), "it is positive definite"
    assert (found.fitted_on, found.fitted_study, found.fitted_epsilon) == (asking.id, "s", 40)


def test_what_goes_together_in_a_round_is_half_above_and_half_below_the_diagonal():
    frame, labels = corners("abb")
    asking, tally = round_of(frame.assign(y=2 * frame["x"]), labels)
    assert moments_of_round(asking, tally).covariance == pytest.approx(np.full((2, 2), 8 / 9), abs=0.05)


def test_the_noise_of_a_round_is_that_of_an_entry_of_its_second_moments():
    """Of a square, which is asked as 2 t^2 - 1, half the deviation; half of the devices hold no x."""
    asking, tally = round_of(*corners("ab", (0, 1)), epsilon=2)
    noise = []
    for one in estimate(asking, tally).questions:
        if one.question.kind == "product":
            holds = 1.0 if one.missing is None else 1 - float(one.missing.value[0])
            square = 4 if one.question.feature == one.question.other else 1
            noise.append(float(one.cells.variance[0]) / holds**2 / square)
    assert len(noise) == 3
    assert moments_of_round(asking, tally).noise == pytest.approx(np.mean(noise) ** 0.5)


@pytest.mark.parametrize("epsilon", [1.0, 6.0, 40.0])
def test_the_variances_of_a_rounds_products_are_those_of_many_rounds(epsilon):
    """At a large epsilon a product is a noisy vector, whose records spread: of a square by a normal law's moment,
    which is too much for a uniform y, and by the smaller square of two features. 300 rounds know a variance to 8 %.
    """
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"x": rng.choice([0.0, 2.0, 10.0], 3_000), "y": rng.uniform(0, 20, 3_000)})
    labels = np.array(list("ab"))[rng.integers(0, 2, 3_000)]
    found, expected = {}, {}
    for seed in range(300):
        people = np.random.default_rng(seed).integers(0, 3_000, 3_000)
        asking, tally = round_of(frame.iloc[people].reset_index(drop=True), labels[people], seed, epsilon=epsilon)
        for one in estimate(asking, tally).questions:
            if one.question.kind == "product":
                assert one.cells.variance.shape == one.cells.value.shape == (1,)
                place = one.question.feature, one.question.other
                found.setdefault(place, []).append(float(one.cells.value[0]))
                expected.setdefault(place, []).append(float(one.cells.variance[0]))
    ratios = {place: np.mean(expected[place]) / np.var(found[place]) for place in found}
    assert len(ratios) == 3
    assert all(0.75 < ratio < (1.3 if epsilon == 1 else 3.5) for ratio in ratios.values()), ratios
    assert 0.75 < ratios["x", "y"] < 1.3
    json.dumps(estimate(asking, tally).to_json())


def test_classes_that_may_be_absent_take_no_part_and_no_signal_is_made_of_noise():
    """Nobody is of class b. Over 60 rounds the scatter between classes that are alike is 0 but for its spread."""
    asking, tally = round_of(*corners("a"))
    assert moments_of_round(asking, tally).between == pytest.approx(np.zeros((2, 2)), abs=0.05)
    frame, labels = corners("aabb")
    alike = frame.assign(x=np.where(np.arange(len(frame)) % 2, 10.0, 0.0)).iloc[:2_000]
    found = [
        moments_of_round(*round_of(alike, labels[:2_000], rng=seed, epsilon=2)).between.diagonal() for seed in range(60)
    ]
    assert np.abs(np.mean(found, axis=0) / (np.std(found, axis=0) / 60**0.5)).max() < 4, "by chance 1 of 8,000 times"


def test_a_round_may_have_no_answer_to_the_label_alone_but_needs_one_to_every_other_question():
    asking, tally = round_of(*corners("ab"))
    label, *others = range(len(asking.questions))
    for silent, says in ((label, None), (others[0], "1 of 6 questions have no reports"), (others[-1], "1 of 6")):
        n, counts = tally.n.copy(), [one.copy() for one in tally.counts]
        n[silent] = 0
        counts[silent][:] = 0
        if says is None:
            assert moments_of_round(asking, Tally(asking, n, counts)).mean == pytest.approx([0, 1], abs=0.05)
            continue
        with pytest.raises(ValueError, match=says):
            moments_of_round(asking, Tally(asking, n, counts))


def test_of_an_input_that_hardly_any_device_holds_no_moment_is_told():
    with pytest.raises(ValueError, match="too few devices hold a value"):
        moments_of_round(*round_of(*corners("ab", (0, 1, 2, 3))))
