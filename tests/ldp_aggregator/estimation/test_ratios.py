"""Quotients of estimates, of who holds a value or is of a class: unbiased, with intervals that cover."""

import json

import numpy as np
import pandas as pd
import pytest
from drafts import draft, number, text
from scipy.stats import norm

from ldp_aggregator import Tally, estimate
from ldp_aggregator.estimation.cells import wilson
from ldp_aggregator.estimation.ratios import among_present, conditional_reach, conditional_table
from ldp_aggregator.mechanisms import analysis_of
from ldp_protocols import Campaign
from ldp_simulations import simulate
from ldp_simulations.columns import Columns
from ldp_simulations.fidelities import simulate_counts

Z_95 = 1.959963984540054


FALSE_ALARM = 1e-5
RUNS = 1_000
PEOPLE = 1_000
PRIVACIES = [
    {"epsilon": 2, "discrete": "she"},
    {"epsilon": 3, "answers": "all", "discrete": "oue"},
    pytest.param({"epsilon": 1, "discrete": "ss"}, marks=pytest.mark.long),
]


def campaign_of(**privacy):
    features = text("c", "r", "g", "b", missing=True), number("x", high=10, missing=True)
    return Campaign.compile(draft(*features, privacy=privacy))


@pytest.fixture(scope="module")
def people():
    """Values are missing by class: .3 and .1 of the category, .25 and .05 of the number."""
    rng = np.random.default_rng(1)
    of_a = rng.random(PEOPLE) < 0.4
    places = (rng.random(PEOPLE)[:, None] > np.where(of_a[:, None], [0.2, 0.5], [0.6, 0.7])).sum(axis=1)
    c = np.where(rng.random(PEOPLE) < np.where(of_a, 0.3, 0.1), None, np.array(["r", "g", "b"], dtype=object)[places])
    x = rng.normal(np.where(of_a, 7, 4), 1.5).clip(0, 10)
    x[rng.random(PEOPLE) < np.where(of_a, 0.25, 0.05)] = np.nan
    return pd.DataFrame({"c": c, "x": x}), np.where(of_a, "a", "b")


def truth_of(people):
    frame, labels = people
    present = frame["c"].notna()
    return {
        "missing": {"c": 1 - present.mean(), "x": frame["x"].isna().mean()},
        "present": np.array([((frame["c"] == v) & (labels == k)).sum() / present.sum() for v in "rgb" for k in "ab"]),
        "mean": np.array([frame["x"][labels == k].mean() for k in "ab"]),
    }


@pytest.mark.parametrize("privacy", PRIVACIES, ids=lambda privacy: privacy["discrete"])
def test_shares_of_the_missing_and_frequencies_among_the_others_are_unbiased_and_covered_in_93_to_97_of_100_runs(
    people, privacy
):
    """Means of 1,000 runs within a bound that a right estimator passes with probability 1 - 1e-5 for each number; the
    probability that right 95 % intervals cover less than 92 % of 1,000 runs is below 1e-4 for each.
    """
    campaign, truth, rng = campaign_of(**privacy), truth_of(people), np.random.default_rng(2)
    columns = Columns.of(campaign, *people)
    shares, shares_covered, cells_covered, means, mean_errors = [], [], [], [], []
    for _ in range(RUNS):
        found = estimate(campaign, simulate_counts(columns, rng, devices=30_000))
        parts = [(found.missing[name].cells, truth["missing"][name]) for name in "cx"]
        shares.append([float(cells.value[0]) - true for cells, true in parts])
        shares_covered.append([bool(cells.low[0] <= true <= cells.high[0]) for cells, true in parts])
        cells = found.present["c"].cells
        cells_covered.append((cells.low <= truth["present"]) & (truth["present"] <= cells.high))
        means.append(found.moments["x"].mean - truth["mean"])
        mean_errors.append(found.moments["x"].mean_variance)
    limit = norm.isf(FALSE_ALARM / 2) / np.sqrt(RUNS)
    assert (np.abs(np.mean(shares, axis=0)) < limit * np.std(shares, axis=0)).all()
    assert (np.abs(np.mean(means, axis=0)) < (limit + 0.1) * np.std(means, axis=0)).all()  # A ratio's bias: O(1/n).
    assert np.sqrt(np.mean(mean_errors, axis=0)) == pytest.approx(np.std(means, axis=0), rel=0.15)
    covered = np.concatenate([np.mean(shares_covered, axis=0), np.mean(cells_covered, axis=0)])
    assert covered.min() > 0.92
    assert covered.mean() == pytest.approx(0.95, abs=0.03)


@pytest.mark.parametrize("discrete", ["de", "oue", "ss", "she"])
def test_frequencies_among_the_others_vary_as_is_stated_where_half_of_all_values_are_missing(discrete):
    """A cell and the share of the missing are estimated from the same reports: of a cell that most of the others are in
    a variance without their covariance is far too large. An empirical variance of 600 runs has a standard error of
    5.8 %: one that is off by half is found, a right one fails with a chance below 1e-4.
    """
    asked = Campaign.compile(draft(text("c", "r", "g", missing=True), privacy={"epsilon": 6, "discrete": discrete}))
    frame = pd.DataFrame({"c": [None] * 500 + ["r"] * 400 + ["g"] * 100})
    labels = np.array(["a", "b"] * 50 + ["a"] * 800 + ["b"] * 100)
    columns, rng = Columns.of(asked, frame, labels), np.random.default_rng(11)
    found = [estimate(asked, simulate_counts(columns, rng, 4_000)).present["c"].cells for _ in range(600)]
    values = np.array([one.value for one in found])
    truth = [((frame["c"] == v) & (labels == k)).sum() / 500 for v in "rg" for k in "ab"]
    stated = np.mean([one.variance for one in found], axis=0)
    assert values.var(axis=0) / stated == pytest.approx(1, abs=0.25)
    assert np.abs(values.mean(axis=0) - truth).max() < 5 * np.sqrt(stated.max() / 600)


def test_estimates_tell_the_missing_share_and_the_frequencies_among_the_others(people):
    campaign = campaign_of(epsilon=2)
    found = estimate(campaign, simulate(campaign, *people, rng=4))
    told = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert set(told["missing"]) == {"c", "x"}
    assert set(told["missing"]["c"]) == {"estimate", "variance", "low", "high", "per_liar"}
    assert [(row["value"], row["class"]) for row in told["present"]["c"]] == [(v, k) for v in "rgb" for k in "ab"]
    assert sum(row["processed"] for row in told["present"]["c"]) == pytest.approx(1)
    pair = next(question for question in told["questions"] if question["kind"] == "pair")
    assert [row["value"] for row in pair["cells"]][-2:] == ["missing", "missing"]
    frame = found.to_frame()
    assert frame[frame["kind"] == "missing"]["feature"].tolist() == ["c", "x"]
    assert len(frame[frame["kind"] == "present"]) == 6


@pytest.mark.parametrize("discrete", ["de", "ss", "oue", "she"])
def test_without_reports_and_among_nobody_nothing_is_known_and_nothing_fails(discrete):
    campaign = campaign_of(epsilon=1, discrete=discrete)
    told = estimate(campaign, Tally(campaign)).to_json()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert told["missing"]["x"] == {"estimate": 0.0, "variance": None, "low": 0.0, "high": 1.0, "per_liar": None}
    assert {row["per_liar"] for row in told["present"]["c"]} == {None}
    campaign = campaign_of(epsilon=8)
    nobody = pd.DataFrame({"c": [None] * 500, "x": [np.nan] * 500})
    found = estimate(campaign, simulate(campaign, nobody, ["a", "b"] * 250, rng=5))
    assert found.missing["c"].cells.high[0] > 0.99
    assert found.moments["x"].insufficient.all()
    json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.parametrize("discrete", ["de", "ss", "oue", "she"])
def test_no_lie_moves_what_is_told_of_the_missing_and_of_the_others_further_than_is_printed(people, discrete):
    campaign, rng = campaign_of(epsilon=3, discrete=discrete), np.random.default_rng(6)
    honest = simulate(campaign, *people, rng=rng)
    before = estimate(campaign, honest)
    asked = next(question for question in campaign.questions if question.kind == "pair")
    n = int(honest.n[asked.index])
    for _ in range(200):
        tally = Tally(campaign) + honest
        counts = tally.counts[asked.index]
        counts += extreme(asked, rng) - extreme(asked, rng)
        after = estimate(campaign, tally)
        for told, moved in ((before.missing["c"], after.missing["c"]), (before.present["c"], after.present["c"])):
            assert (np.abs(moved.cells.value - told.cells.value) <= told.per_liar * (1 + 1e-9)).all()
    assert int(tally.n[asked.index]) == n


def extreme(question, rng):
    """Return what one report adds to the counts, as far out as its mechanism has it."""
    mechanism, cells = question.mechanism, question.domain_size
    if mechanism.name == "she":
        return np.where(rng.random(cells) < 0.5, 1, -1) * mechanism.bound
    if mechanism.name == "oue":
        return (rng.random(cells) < 0.5).astype(np.int64)
    size = 1 if mechanism.name == "de" else mechanism.subset_size
    return np.isin(np.arange(cells), rng.choice(cells, size, replace=False)).astype(np.int64)


def test_of_complete_features_nothing_is_told_to_be_missing_and_no_frequencies_among_the_others():
    campaign = Campaign.compile(draft(text("c", "r", "g", "b"), privacy={"epsilon": 4, "discrete": "de"}))
    found = estimate(campaign, Tally(campaign))
    assert (found.to_json()["missing"], found.to_json()["present"]) == ({}, {})
    with pytest.raises(TypeError, match="complete"):
        among_present(found.asking("c", "pair"), found.per_liar[1], found.campaign)


VALUES = {"u": ["p", "q"], "w": ["1", "2", "3"]}


def asking(classes="abc", **privacy):
    label, features = {"name": "y", "classes": list(classes)}, (text(name, *values) for name, values in VALUES.items())
    return Campaign.compile(draft(*features, label=label, privacy={"epsilon": 2, **privacy}))


def members(classes="abc"):
    rng, shares = np.random.default_rng(3), np.array([0.5, 0.3, 0.2])[: len(classes)]
    label = rng.choice(len(classes), 4_000, p=shares / shares.sum())
    u = np.where(rng.random(4_000) < 0.8, label == 0, label != 0)
    w = np.where(rng.random(4_000) < 0.5, label + 1, rng.integers(1, 4, 4_000)).astype(str)
    return pd.DataFrame({"u": np.where(u, "q", "p"), "w": w}), np.array([*classes])[label]


@pytest.mark.parametrize(
    ("classes", "privacy"),
    [
        *[("abc", {"discrete": name}) for name in ("de", "sue", "oue", "she", "ss")],
        ("abc", {"discrete": "oue", "answers": "all"}),
        ("abc", {"discrete": "de", "answers": "all", "epsilon": 6}),
        ("ab", {}),
    ],
    ids=str,
)
def test_the_interval_of_a_conditional_share_holds_the_truth_as_often_as_it_says(classes, privacy):
    """Each assertion fails by chance in less than one of 10,000 choices of the seeds."""
    asked, (frame, labels) = asking(classes, **privacy), members(classes)
    columns, rng = Columns.of(asked, frame, labels), np.random.default_rng(1)
    found = [estimate(asked, simulate_counts(columns, rng, 12_000)) for _ in range(300)]
    for name in VALUES:
        cells = pd.crosstab(frame[name], labels, normalize="columns").to_numpy().ravel()
        tables = [conditional_table(one, name).cells for one in found]
        values = np.array([one.value for one in tables])
        stated = np.mean([one.variance for one in tables], axis=0)
        assert values.var(axis=0) == pytest.approx(stated, rel=0.4)
        reach = np.mean([(one.high - one.low) / np.sqrt(one.variance) for one in tables], axis=0) / (2 * Z_95)
        assert ((reach > 0.999) & (reach < 1.03)).all(), (
            "with so many reports the interval is that of two standard errors"
        )
        covered = np.mean([(one.low <= cells) & (cells <= one.high) for one in tables], axis=0)
        assert covered == pytest.approx(0.95, abs=0.055), name


def test_without_noise_the_interval_of_a_share_is_wilsons():
    """Three of 40 people of a class hold the value, and none of the 20 of the other; half a count is added."""
    label = {"name": "y", "classes": ["a", "b"], "weight": 0}
    asked = Campaign.compile(draft(text("u", "p", "q"), label=label, privacy={"epsilon": 40, "discrete": "de"}))
    tally = Tally(asked)
    tally.add(0, 60, np.array([37, 20, 3, 0]))
    found = conditional_table(estimate(asked, tally), "u").cells
    for place, (people, of) in enumerate([(37, 40), (20, 20), (3, 40), (0, 20)]):
        low, high = wilson(np.array([people]), of)
        assert [found.low[place], found.high[place]] == pytest.approx([low[0], high[0]], abs=0.03)


@pytest.mark.parametrize(
    ("devices", "epsilon", "classes"), [(60, 4, [0.5, 0.5]), (300, 8, [0.8, 0.15, 0.05]), (2_000, 8, [0.8, 0.2])]
)
def test_where_few_people_are_behind_a_cell_its_interval_holds_as_often_as_it_says(devices, epsilon, classes):
    """Sixteen values of falling frequency: behind many cells are 0 to 10 people."""
    shares = 1 / np.arange(1, 17) ** 2
    shares /= shares.sum()
    names = [f"c{place}" for place in range(len(classes))]
    asked = Campaign.compile(
        draft(
            text("u", *map(str, range(16))),
            label={"name": "y", "classes": names, "weight": 0},
            privacy={"epsilon": epsilon},
        )
    )
    (question,), rng, held = asked.questions, np.random.default_rng(5), []
    for _ in range(400):
        tally, law = Tally(asked), np.outer(shares, classes).ravel()
        tally.add(0, devices, analysis_of(question.mechanism).tally(rng.multinomial(devices, law), rng))
        cells = conditional_table(estimate(asked, tally), "u").cells
        truth = np.repeat(shares, len(classes))
        held.append(np.where(np.isfinite(cells.variance), (cells.low <= truth) & (truth <= cells.high), np.nan))
    told = np.isfinite(held).mean(axis=0) > 0.5
    assert np.nanmean(held) > 0.93
    assert np.nanmean(np.array(held)[:, told], axis=0).min() > 0.83, "as low as Wilson's own, with a tenth of a person"


def test_where_devices_answer_all_questions_the_records_behind_a_cell_and_its_class_are_the_same():
    """Without what they share, .0098 less and .0184 more."""
    asked = asking("ab", answers="all", epsilon=9, discrete="de")
    tally = Tally(asked)
    for question in asked.questions:
        size = question.domain_size
        tally.add(question.index, 600, np.full(size, 600 // size))
    cells = conditional_table(estimate(asked, tally), "u").cells
    assert cells.low == pytest.approx([0.4290] * 4, abs=1e-4)
    assert cells.high == pytest.approx([0.5718] * 4, abs=1e-4)


def test_a_class_that_cannot_be_told_from_nobodys_has_no_shares():
    asked, (frame, labels) = asking(), members()
    few = estimate(asked, simulate(asked, frame, labels, rng=1, fidelity="counts", devices=12))
    for found in (few, estimate(asked, Tally(asked))):
        for name, values in VALUES.items():
            cells = conditional_table(found, name).cells
            unknown = np.isinf(cells.variance)
            assert unknown.any()
            assert (cells.value[unknown] == 1 / len(values)).all()
            assert (cells.low[unknown] == 0).all()
            assert (cells.high[unknown] == 1).all()


@pytest.mark.parametrize("classes", ["ab", "abc"])
@pytest.mark.parametrize("liars", [1, 40])
def test_liars_move_no_conditional_share_by_more_than_is_stated(classes, liars):
    """The devices of the worst answers anybody can give, in place of as many honest ones."""
    asked, (frame, labels) = asking(classes, discrete="oue"), members(classes)
    tally = simulate(asked, frame, labels, rng=2, fidelity="counts", devices=12_000)
    honest = estimate(asked, tally)
    for question in asked.questions:
        for supports in (0, 1):
            lied = Tally(asked) + tally
            counts = lied.counts[question.index]
            counts[:] = np.clip(counts + (2 * supports - 1) * liars, 0, tally.n[question.index])
            moved = estimate(asked, lied)
            for name in VALUES:
                table = conditional_table(honest, name)
                distance = np.abs(conditional_table(moved, name).cells.value - table.cells.value)
                assert (distance <= conditional_reach(honest, table, liars) + 1e-12).all()


def test_no_liar_moves_nothing_and_many_can_move_everything():
    asked, (frame, labels) = asking(), members()
    found = estimate(asked, simulate(asked, frame, labels, rng=2, fidelity="counts", devices=12_000))
    table = conditional_table(found, "w")
    assert (conditional_reach(found, table, 0) == 0).all()
    assert (conditional_reach(found, table, 10**6) == 1).all()
    nobody = estimate(asked, Tally(asked))
    assert (conditional_reach(nobody, conditional_table(nobody, "w"), 1) == 1).all()
