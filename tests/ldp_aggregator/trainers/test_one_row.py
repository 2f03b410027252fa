"""The premise of every proof, on the real paths: a row adds what it adds alone, whatever the other rows are.

Draws with the same seed have the same noise, which cancels in a difference. Adding and removing are one difference; a
row that is replaced is one that is removed and one that is added in the same class.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp_aggregator.counting.shares import decode_distributed, decode_share
from ldp_aggregator.trainers import FederatedNB, distributed_statistics, node_statistics
from ldp_aggregator.trainers.federation import federated
from ldp_aggregator.trainers.moment_training import _columns
from ldp_aggregator.trainers.schemas import Schema
from ldp_aggregator.trainers.statistics import statistics_of
from protocols import Campaign

pytestmark = pytest.mark.filterwarnings("ignore::ldp_aggregator.trainers.noise.randomness.PrivacyWarning")

NUMBERS = st.one_of(st.floats(-200, 200), st.sampled_from([np.nan, np.inf, -np.inf, 0.0, 100.0, 18.0, 90.0]))
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["red", "green", "blue", "mauve", None]), NUMBERS, NUMBERS, NUMBERS, st.sampled_from("abc")
    ),
    min_size=1,
    max_size=12,
)


def table_of(rows):
    frame = pd.DataFrame(rows, columns=["colour", "hours", "income", "age", "class"])
    numbers = dict.fromkeys(("hours", "income", "age"), np.float64)
    frame = frame.astype({"colour": object, "class": object, **numbers})
    return frame, frame.pop("class")


@pytest.fixture(scope="module")
def campaign(schema):
    return Campaign.compile({"version": 1, "title": "Federated", **schema, "privacy": {"epsilon": 2}})


@settings(max_examples=25, deadline=None)
@given(rows=ROWS, seed=st.integers(0, 99))
def test_a_nodes_share_moves_by_what_the_row_is_alone(campaign, rows, seed):
    def full(some):
        return decode_share(node_statistics(campaign, *table_of(some), random_state=seed), campaign)

    def distributed(some):
        share = distributed_statistics(campaign, *table_of(some), nodes=3, random_state=seed)
        return decode_distributed(share, campaign).vector

    for path in (full, distributed):
        assert (path(rows) - path(rows[1:]) == path(rows[:1]) - path([])).all()


@settings(max_examples=25, deadline=None)
@given(rows=ROWS)
def test_the_moments_of_a_class_are_of_its_own_values(schema, rows):
    """What global and smooth sensitivity see of a feature: one value more in the row's class, none in the others."""
    read = Schema.read(schema)

    def steps(some):
        frame, labels = table_of(some)
        classes = read.classes_of(labels, len(frame))
        return [column.steps.tolist() for f in read.gaussians for column in _columns(read, f.name, frame, classes)]

    for with_it, without, alone in zip(steps(rows), steps(rows[1:]), steps(rows[:1]), strict=True):
        assert with_it == sorted(without + alone)


@settings(max_examples=15, deadline=None)
@given(rows=ROWS, seed=st.integers(0, 99))
def test_a_row_moves_one_group_of_nodes_by_what_it_is_alone(schema, rows, seed):
    """The last row, as the seed deals the rows in their order: without a seed each is dealt by itself."""
    read, seen = Schema.read(schema), []

    def groups(some):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(federated, "robust_model", lambda s, p, g, o: seen.append(g) or robust_model(s, p, g, o))
            FederatedNB(schema, nodes=5, groups=3, random_state=seed).fit(*table_of(some))
        return np.array([group.totals for group in seen[-1]])

    robust_model = federated.robust_model
    frame, labels = table_of(rows[-1:])
    alone = statistics_of(read, frame, read.classes_of(labels, 1))
    moved = groups(rows) - groups(rows[:-1])
    assert sorted(map(tuple, moved)) == sorted(map(tuple, [alone, 0 * alone, 0 * alone]))
