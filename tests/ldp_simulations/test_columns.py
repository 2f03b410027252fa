"""A column on arrays is what the device makes of its record, value by value."""

import math

import numpy as np
import pandas as pd
import pytest
from drafts import draft, number, text
from evaluated import U, V, evaluation, model

from ldp_aggregator.learning.frames import feature_indices
from ldp_aggregator.mechanisms.analysis import MomentBatch
from ldp_client.answering import encode, item_of
from ldp_protocols import Campaign, RecordError, ScriptedCoins
from ldp_protocols.document.questions import LABEL, PAIR, PRODUCT, SIGN, VALUE
from ldp_protocols.document.schema import Label
from ldp_protocols.features import NumericFeature
from ldp_simulations.columns import Columns, class_indices

UNIT = 2**52

AWKWARD = [0, -0.0, 1e-320, 1e308, -1e308, math.inf, -math.inf, math.nan]
AWKWARD += [None, "3", True, 10**400, 7, 6.999999999999999]


def device_indices(feature, values):
    return [-1 if (index := feature.index_of(value)) is None else index for value in values]


@pytest.mark.parametrize(("low", "high", "bins"), [(0, 1, 10), (-3.3, 7.7, 7), (0, 200000, 8), (0.1, 0.7, 3)])
def test_bins_agree_with_the_device_at_and_beside_every_edge(low, high, bins):
    feature = NumericFeature("x", low, high, bins)
    edges = np.array([low, high, *feature.inner_edges], dtype=float)
    values = np.concatenate([edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf)])
    assert feature_indices(feature, pd.Series(values)).tolist() == device_indices(feature, values.tolist())
    assert feature_indices(feature, pd.Series(AWKWARD, dtype=object)).tolist() == device_indices(feature, AWKWARD)


LABELLED = {"label": {"name": "class", "classes": ["a", "b"]}}
NUMBERS = [number("x", -1.3, 7.1), number("y", high=3), number("z")]
PROJECTION = {
    "method": "pca",
    "inputs": ["x", "y"],
    "mean": [2.9, 1.45],
    "scale": [4.2, 1.5],
    "matrix": [[0.6, 0.8], [0.8, -0.6]],
    "outputs": [number("c1", -0.9, 0.7), number("c2", -1, bins=7)],
    "fitted_on": "public",
}
PRIVACY = {"epsilon": 1, "continuous": "laplace", "discrete": "de"}
PROJECTED = draft(*NUMBERS, **LABELLED, projection=PROJECTION, privacy=PRIVACY)
MOMENTS_ROUND = {**PROJECTED, "projection": None, "asks": "moments", "study": "s"}


def incomplete(features):
    return [{**one, "missing": True} for one in features]


INCOMPLETE = draft(
    *incomplete([*NUMBERS, text("w", "p", "q")]),
    **LABELLED,
    projection={**PROJECTION, "outputs": incomplete(PROJECTION["outputs"])},
)
INCOMPLETE_ROUND = draft(*incomplete(NUMBERS), asks="moments", study="s", **LABELLED)


@pytest.mark.parametrize(
    ("draft", "kinds"),
    [
        (PROJECTED, {LABEL, VALUE, PAIR}),
        (MOMENTS_ROUND, {LABEL, VALUE, PRODUCT}),
        (INCOMPLETE, {LABEL, VALUE, PAIR}),
        (INCOMPLETE_ROUND, {LABEL, VALUE, PRODUCT}),
    ],
)
def test_every_item_agrees_with_the_device_to_the_last_bit(draft, kinds):
    """Of a sign: whether it is missing. Which of both ends is a coin's; word 0 says the upper of all but the lowest."""
    campaign, rng = Campaign.compile(draft), np.random.default_rng(6)
    frame = pd.DataFrame(rng.normal(1, 3, size=(2_000, 3)), columns=["x", "y", "z"])
    frame.iloc[0], frame.iloc[1] = np.inf, -np.inf
    may_be_missing = draft in (INCOMPLETE, INCOMPLETE_ROUND)
    if may_be_missing:
        frame["w"] = rng.choice(["p", "q", "r"], size=2_000)
        frame = frame.mask(rng.random(frame.shape) < 0.4)
    columns = Columns.of(campaign, frame, rng.choice(["a", "b"], size=len(frame)))
    assert {question.kind for question in campaign.questions} >= kinds
    for question in campaign.questions:
        people = zip(frame.to_dict("records"), columns.classes.tolist(), strict=True)
        words = [0] if may_be_missing else []
        on_device = [encode(campaign, question, *person, ScriptedCoins([*words])) for person in people]
        if question.encoding == SIGN:
            moments = columns.moments(question, np.arange(len(frame)), rng)
            bits = np.where(moments.missing, 2, moments.values > -UNIT)
            assert (3 * moments.cells + bits).tolist() == on_device
            assert 0 < moments.missing.mean() < 1
            continue
        items = columns.items(question, np.arange(len(frame)), rng)
        if isinstance(items, MomentBatch):
            assert list(zip(items.cells.tolist(), items.values.tolist(), strict=True)) == on_device
        else:
            assert items.tolist() == on_device


def test_an_undeclared_label_names_its_row_and_rows_and_labels_must_be_as_many(make_everything, make_people):
    with pytest.raises(RecordError, match=r"row 3: y is 'maybe'; it must be one of yes, no"):
        class_indices(Label("y", ("yes", "no")), pd.Series(["yes", "no", "maybe"]))
    frame, labels = make_people(10, 1)
    with pytest.raises(ValueError, match="10 rows have 9 labels"):
        Columns.of(make_everything(), frame, labels[:9])


def test_a_missing_value_is_replaced_anew_each_time_and_never_changes_the_table(make_everything):
    campaign = make_everything()
    columns = Columns.of(campaign, pd.DataFrame(index=range(3_000)), ["yes"] * 3_000)
    pair = next(q for q in campaign.questions if q.feature == "colour")
    rows, rng = np.arange(3_000), np.random.default_rng(1)
    first, second = columns.items(pair, rows, rng), columns.items(pair, rows, rng)
    assert set(first.tolist()) == set(second.tolist()) == {0, 2, 4}
    assert first.tolist() != second.tolist()
    declared = next(q for q in campaign.questions if q.feature == "shape")
    assert set(columns.items(declared, rows, rng).tolist()) == {2}


@pytest.mark.parametrize("edges", [[0], [-1, 0, 1], [-3.5, -0.7, 0, 0.2, 2]])
def test_what_a_model_says_agrees_with_the_device_also_where_a_score_is_on_an_edge(edges):
    """Of equal classes the odds are 0, which is an edge; the table has every record, and some that hold nothing."""
    even = {**V, "likelihood": [[0.5, 0.5], [0.5, 0.5]]}
    tilted = {**U, "likelihood": [[0.25, 0.5], [0.5, 0.25], [0.25, 0.25]]}
    campaign = evaluation(
        evaluation={"model": model(tilted, even, prior=(0.5, 0.5)), "edges": edges, "weights": [1, 1]}
    )
    frame = pd.DataFrame([{"u": u, "v": v, "size": 1.0} for u in ("1", "2", "3", None, "?") for v in ("p", "q", None)])
    for label in ("a", "b"):
        columns = Columns.of(campaign, frame, [label] * len(frame))
        for question in campaign.questions:
            told = [
                item_of(campaign, question, one, int(label == "b"), ScriptedCoins([]))
                for one in frame.to_dict("records")
            ]
            assert columns.of_the_model(question).tolist() == told
    assert len(set(told)) > 1


def test_of_two_inputs_a_projections_output_is_missing_where_both_are_and_replaced_where_one_is():
    """An output is replaced at random, or an input of it, only where its author calls that complete."""
    complete, open_ = Campaign.compile(PROJECTED), Campaign.compile(INCOMPLETE)
    frame = pd.DataFrame({"x": [1.0, None, 1.0, None], "y": [1.0, 1.0, None, None], "z": [1.0] * 4, "w": ["p"] * 4})
    for campaign, replaced in ((complete, [False, True, True, True]), (open_, [False] * 4)):
        columns = Columns.of(campaign, frame, ["a"] * 4)
        question = next(one for one in campaign.questions if one.feature == "c1")
        assert columns.incomplete(question).tolist() == replaced
    of_an_open_one = Campaign.compile({**INCOMPLETE, "features": [*NUMBERS[:2], *INCOMPLETE["features"][2:]]})
    columns = Columns.of(of_an_open_one, frame, ["a"] * 4)
    question = next(one for one in of_an_open_one.questions if one.feature == "c1")
    assert columns.incomplete(question).tolist() == [False, True, True, True]


def test_a_missing_input_of_a_projection_is_at_random_where_it_is_called_complete_and_else_at_its_mean():
    frame = pd.DataFrame({"x": [None] * 200, "y": [1.45] * 200, "z": [1.0] * 200, "w": ["p"] * 200})
    for described, values in ((PROJECTED, 200), (INCOMPLETE, 1)):
        campaign, rng = Campaign.compile(described), np.random.default_rng(3)
        columns = Columns.of(campaign, frame, ["a"] * 200)
        question = next(one for one in campaign.questions if one.feature == "c1" and one.kind == VALUE)
        drawn = columns.moments(question, np.arange(200), rng).values
        assert len(set(drawn.tolist())) > 100 if values == 200 else set(drawn.tolist()) == {round(UNIT / 8)}
