"""PCA and DCA from public tables and from private rounds."""

import json

import numpy as np
import pandas as pd
import pytest
from drafts import draft, number
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from ldp_aggregator import Tally, train
from ldp_aggregator.learning.projections import add_to_draft, fit_projection, moments_of_round, moments_of_table
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
        projection = fit_projection(exact(campaign, frame), "dca", 3, spread=spread)
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
