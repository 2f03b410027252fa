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
