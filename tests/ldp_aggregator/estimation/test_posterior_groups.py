"""Features of one shape are computed at once: what comes out is what comes out for each in a group of its own."""

import json

import numpy as np
import pandas as pd
import pytest
from columns import columns
from drafts import draft, text
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp_aggregator import Tally, estimate
from ldp_aggregator.estimation import posterior as tables
from ldp_aggregator.estimation.independence import p_value
from ldp_aggregator.estimation.posterior import posterior_of
from ldp_aggregator.learning.frames import as_column, column_of, declared_indices, numbers, texts_of
from ldp_aggregator.mechanisms import analysis_of
from ldp_protocols import Campaign
from ldp_protocols.document.schema import Label
from ldp_protocols.features import CategoricalFeature, NumericFeature
from ldp_protocols.values import number_of, text_of

shapes = st.lists(st.tuples(st.integers(2, 4), st.booleans()), min_size=1, max_size=6)
"""Numbers of values of features, and whether these may be missing."""

EPSILONS = {"one campaign": (2.0,), "two campaigns": (1.0, 4.0)}
"""Those of campaigns over the same features."""


def campaign_of(features, classes, epsilon):
    described = [
        text(f"x{i}", *(f"v{j}" for j in range(size)), missing=missing) for i, (size, missing) in enumerate(features)
    ]
    label = {"name": "y", "classes": [f"c{i}" for i in range(classes)]}
    return Campaign.compile(draft(*described, label=label, privacy={"epsilon": epsilon}))


def tally_of(campaign, rng):
    """A few hundred reports to every question but one in six, which nobody answered."""
    tally = Tally(campaign)
    for place, question in enumerate(campaign.questions):
        tally.n[place] = n = rng.integers(200, 400) * (rng.random() < 5 / 6)
        held = rng.multinomial(n, rng.dirichlet(np.ones(question.domain_size)))
        tally.counts[place][:] = analysis_of(question.mechanism).tally(held, rng)
    return tally


def learn(estimates):
    questions, campaign = [question for one in estimates for question in one.questions], estimates[0].campaign
    return posterior_of(campaign.asked, len(campaign.label.classes), questions, questions)


@pytest.mark.parametrize("epsilons", EPSILONS.values(), ids=EPSILONS)
@settings(max_examples=settings.default.max_examples // 4)
@given(features=shapes, classes=st.integers(2, 3), seed=st.integers(0, 2**32))
def test_features_of_mixed_shapes_are_what_they_are_alone_in_their_groups(epsilons, features, classes, seed):
    rng = np.random.default_rng(seed)
    campaigns = [campaign_of(features, classes, epsilon) for epsilon in epsilons]
    estimates = [estimate(one, tally_of(one, rng)) for one in campaigns]
    together = learn(estimates)
    assert set(together.features) == {f"x{i}" for i in range(len(features))}
    assert {len(set(features))} == {len(together.groups)}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tables, "MOST_NUMBERS", 1)
        alone = learn(estimates)
    assert len(alone.groups) == len(features)
    for name, feature in alone.features.items():
        found = together.features[name]
        assert found.table == pytest.approx(feature.table, rel=1e-12)
        assert found.present == pytest.approx(feature.present, rel=1e-12)


def test_what_is_large_is_computed_in_parts(monkeypatch):
    campaign = campaign_of([(3, False)] * 5, 2, 1.0)
    found = estimate(campaign, tally_of(campaign, np.random.default_rng(1)))
    whole = learn([found])
    monkeypatch.setattr(tables, "MOST_NUMBERS", 2 * 6**2)
    divided = learn([found])
    assert [len(group.names) for group, _ in divided.groups] == [2, 2, 1]
    for name, feature in whole.features.items():
        assert divided.features[name].table == pytest.approx(feature.table, rel=1e-12)


def counted(campaign, prior, tables, n, rng):
    """The estimates of n reports to every question; ``tables`` are P(value | class) of the features."""
    tally, joints = Tally(campaign), iter(tables)
    for question in campaign.questions:
        cells = prior if question.feature is None else (next(joints) * prior).ravel()
        tally.add(question.index, n, analysis_of(question.mechanism).tally(rng.multinomial(n, cells), rng))
    return estimate(campaign, tally)


def many_values(size, *, ordered=False, missing=False, epsilon=4.0, discrete="oue"):
    """Two features of so many values, frequent ones and rare ones, whose shares differ between the two classes. The
    counts of ``oue`` are independent, and drawn at once.
    """
    rng, prior = np.random.default_rng(size), np.array([0.6, 0.4])
    described = [
        text(f"x{i}", *(f"v{j}" for j in range(size)), missing=missing, **({"ordered": True} if ordered else {}))
        for i in range(2)
    ]
    label = {"name": "y", "classes": ["c0", "c1"]}
    campaign = Campaign.compile(draft(*described, label=label, privacy={"epsilon": epsilon, "discrete": discrete}))
    tables = []
    for _ in described:
        table = (1 / np.arange(1, size + 1))[:, None] * np.exp(rng.normal(0, 0.3, (size, 2)))
        absent = [np.array([[0.3, 0.1]])] * missing
        tables.append(np.vstack([table / table.sum(axis=0) * (1 - sum(absent, 0)), *absent]))
    return campaign, prior, tables


@pytest.mark.parametrize("discrete", ["oue", pytest.param("auto", marks=pytest.mark.long)])
@pytest.mark.parametrize(("ordered", "missing"), [(False, True), (False, False), (True, False), (True, True)])
def test_with_endlessly_many_reports_a_feature_of_many_values_is_the_population(ordered, missing, discrete):
    campaign, prior, tables = many_values(400, ordered=ordered, missing=missing, discrete=discrete)
    posterior = learn([counted(campaign, prior, tables, 10**11, np.random.default_rng(3))])
    for one, table in zip(posterior.features.values(), tables, strict=True):
        assert one.information.size < 256, "values are taken together"
        assert one.cells_of(one.mean[None])[0] == pytest.approx(table, abs=5e-4)
        of_present = table[:400] / table[:400].sum(axis=0)
        assert one.table == pytest.approx(of_present, abs=5e-4)
        assert one.table[300:] == pytest.approx(of_present[300:], rel=0.05), "the rare ones as well"


def test_what_is_taken_together_is_believed_nearly_as_well(monkeypatch):
    """What the log of the ratio of the classes is off by, squared, of four campaigns: less than twice as much."""
    off = {100: 0.0, 1_000: 0.0}
    for most in off:
        monkeypatch.setattr(tables, "MOST_CELLS", most)
        for seed in range(4):
            campaign, prior, truth = many_values(150)
            found = learn([counted(campaign, prior, truth, 300_000, np.random.default_rng(seed))])
            for one, table in zip(found.features.values(), truth, strict=True):
                logarithms = np.diff(np.log(one.table) - np.log(table), axis=1)[:, 0]
                off[most] += float((table @ prior) @ logarithms**2)
    assert off[100] < 2.2 * off[1_000]


def test_without_reports_many_values_are_believed_to_be_even_and_all_tables_are_probabilities():
    campaign, prior, truth = many_values(400, missing=True)
    for n in (0, 1, 50, 5_000):
        for one in learn([counted(campaign, prior, truth, n, np.random.default_rng(n))]).features.values():
            assert one.table.min() > 0
            assert one.table.sum(axis=0) == pytest.approx([1, 1])
            if n == 0:
                assert one.table == pytest.approx(np.full((400, 2), 1 / 400))


def test_features_of_many_values_that_tell_nothing_look_as_if_they_told_something_as_often_as_said(monkeypatch):
    """Of 60 campaigns four or more below .015 have a chance of .013, and fewer than 15 below a half one of 1e-5."""
    monkeypatch.setattr(tables, "MOST_CELLS", 100)
    monkeypatch.setattr(tables, "_TOGETHER", 60)
    found = []
    for seed, epsilon in ((seed, epsilon) for seed in range(30) for epsilon in (1.0, 8.0)):
        campaign, prior, truth = many_values(100, epsilon=epsilon)
        same = [np.repeat((table @ prior)[:, None], 2, axis=1) for table in truth]
        told = counted(campaign, prior, same, 20_000, np.random.default_rng(seed))
        found.append(p_value([told], learn([told]), [], told.class_prior, told.questions))
    assert np.mean(np.array(found) < 0.015) <= 0.05
    assert np.mean(np.array(found) < 0.5) > 0.25


def test_more_features_beside_classes_than_can_be_believed_are_refused_in_a_sentence():
    label = {"name": "y", "classes": [f"c{i}" for i in range(1_000)]}
    described = [text(f"x{i}", "a", "b") for i in range(5)]
    campaign = Campaign.compile(draft(*described, label=label, privacy={"epsilon": 4.0}))
    with pytest.raises(ValueError, match="5 features beside 1000 classes are more than can be believed together"):
        learn([estimate(campaign, Tally(campaign))])


FEATURES = [
    CategoricalFeature("f", ("0", "1", "2.5", "Cafe\u0301")),
    CategoricalFeature("f", ("true", "false", "0.5")),
    CategoricalFeature("f", ("red", "1.0", "missing", "0.1", "9007199254740992")),
    Label("y", ("1", "red")),
]


def indices_of(domain, cells):
    return [-1 if (index := domain.index_of(cell)) is None else index for cell in cells]


@given(columns())
def test_a_column_means_what_its_cells_mean(column):
    cells = [column.iloc[row] for row in range(len(column))]
    for domain in FEATURES:
        assert declared_indices(domain, column).tolist() == indices_of(domain, cells)
    expected = [np.nan if (number := number_of(cell)) is None else number for cell in cells]
    np.testing.assert_array_equal(numbers(column), expected)
    assert texts_of(column) == {text for cell in cells if (text := text_of(cell)) is not None}


def test_numbers_are_an_array_of_their_own_and_dates_beyond_pythons_calendar_are_missing():
    column = pd.Series([1.0, 2.0])
    numbers(column)[:] = 0
    assert column.tolist() == [1.0, 2.0]
    assert numbers(pd.Series([1, 2**60])).tolist() == [1.0, float(2**60)]
    column = pd.Series(np.array([10**9], dtype="datetime64[s]") + np.timedelta64(400_000_000_000, "s"))
    assert np.isnan(numbers(column)).all()
    assert declared_indices(FEATURES[0], column).tolist() == [-1]


@given(st.lists(st.text("0123456789+-.eE \t", max_size=6) | st.none() | st.sampled_from(["nan", "9" * 201, "1_0"])))
def test_texts_of_digits_are_read_at_once_as_one_by_one(texts):
    expected = [np.nan if (number := number_of(text)) is None else number for text in texts]
    for dtype in (object, "str"):
        np.testing.assert_array_equal(numbers(pd.Series(texts, dtype=dtype)), expected)


class Impostor:
    """Equal to 1, and no number."""

    def __eq__(self, other):
        return other == 1

    def __hash__(self):
        return hash(1)


def test_what_claims_to_equal_a_number_moves_no_number():
    for cells in ([Impostor(), 1], [1, Impostor()]):
        column = pd.Series(cells, dtype=object)
        assert declared_indices(FEATURES[0], column).tolist() == indices_of(FEATURES[0], cells)
        assert sorted(np.isnan(numbers(column)).tolist()) == [False, True]


def test_labels_of_a_list_keep_their_values_and_two_columns_are_no_column():
    assert indices_of(FEATURES[3], as_column([1.0, "red", True]).tolist()) == [0, 1, 0]
    with pytest.raises(ValueError, match="one column"):
        as_column(pd.DataFrame({"a": [1]}))
    with pytest.raises(ValueError, match="2 columns 'x'"):
        column_of(pd.DataFrame([[1, 2]], columns=["x", "x"]), NumericFeature("x", 0, 1))


@pytest.mark.parametrize(
    "made", [list, lambda y: np.array(y, dtype=object), np.array, lambda y: pd.Series(y, dtype=object)]
)
def test_a_label_that_has_no_utf_8_is_one_that_nobody_declared(made):
    """Half of a surrogate pair, as JSON can hold it: no row may end a fit."""
    column = as_column(made(["no", "yes", json.loads('"\\ud800"')]))
    assert declared_indices(Label("y", ("no", "yes")), column).tolist() == [0, 1, -1]
