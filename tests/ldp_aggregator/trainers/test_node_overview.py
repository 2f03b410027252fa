"""What shares tell of nodes: the odd one, and what no table gives."""

import warnings

import numpy as np
import pandas as pd
import pytest
from drafts import draft, number, text

from ldp_aggregator.node_statistics import decode_share, encode_share
from ldp_aggregator.trainers import FederatedState, node_statistics
from ldp_aggregator.trainers.node_overview import MOST_ROWS, _names, check_possible, overviews, unlike_sizes
from ldp_aggregator.trainers.schemas import Schema
from ldp_aggregator.trainers.sensitivities import ADD_REMOVE
from ldp_aggregator.trainers.statistics import GRID, plan_noise
from ldp_protocols import Campaign, DocumentError

CAMPAIGN = Campaign.compile(
    draft(
        number("age", 0, 110, missing=True),
        text("ward", "surgery", "medicine", "other", missing=True),
        label={"name": "again", "classes": ["yes", "no"]},
    )
)


def table(seed, rows):
    """Rows, and whether they came again: the older ones and surgery's more often."""
    rng = np.random.default_rng(seed)
    again = rng.random(rows) < 0.3
    ward = np.where(rng.random(rows) < np.where(again, 0.6, 0.2), "surgery", "medicine")
    frame = pd.DataFrame({"age": np.where(again, 70, 50) + rng.normal(0, 12, rows), "ward": ward})
    return frame, pd.Series(np.where(again, "yes", "no"))


@pytest.fixture(scope="module")
def shares():
    """Five hospitals; the noise of a seed, so that distances are the same in every run."""
    return {f"node-{seed}": share_of(seed, 800) for seed in range(5)}


def share_of(seed, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # A seed is never for release.
        return node_statistics(CAMPAIGN, *table(seed, rows), random_state=seed)


MANY = 10**6
LIE = [MANY, 0, MANY * GRID, 0, 0, 0, 0, 0, MANY, 0, 0, 0]
"""All rows old, in medicine, and back again: a table could have them."""


def test_parameters_are_named_in_the_order_of_a_share():
    schema = Schema.of_campaign(CAMPAIGN)
    found = [name for name in _names(schema, plan_noise(schema, 1.0, ADD_REMOVE)) if "missing" not in name]
    values = ("age", "ward = surgery", "ward = medicine", "ward = other")
    assert found == ["again = yes", "again = no", *(f"{one} | {end}" for one in values for end in ("yes", "no"))]


@pytest.mark.parametrize("nodes", [3, 4, 5])
def test_one_that_lies_costs_at_most_a_hundredth_by_default_and_is_the_furthest_from_the_others(shares, nodes):
    """Added up, three are right of .7 of people instead of .84."""
    honest = dict(list(shares.items())[:nodes])
    attacked = {**honest, "node-0": encode_share(CAMPAIGN, np.array(LIE))}
    fresh = table(99, 4000)
    whole, median, added = (
        FederatedState(CAMPAIGN, of).model(**groups).score(*fresh)
        for of, groups in ((honest, {}), (attacked, {}), (attacked, {"groups": 1}))
    )
    assert median > whole - 0.01 > added
    seen = overviews(CAMPAIGN, attacked)
    assert max(seen, key=lambda node: seen[node].distance) == "node-0"
    assert seen["node-0"].distance > 20
    assert max(one.distance for one in overviews(CAMPAIGN, honest).values()) < 5
    assert seen["node-0"].classes[0] > 0.95
    assert seen["node-1"].rows == pytest.approx(800, abs=100)


def test_an_overview_needs_others_and_rows(shares):
    alone = overviews(CAMPAIGN, {"node-0": shares["node-0"]})["node-0"]
    assert (alone.distance, alone.furthest) == (None, None)
    nothing = encode_share(CAMPAIGN, np.zeros(12, dtype=np.int64))
    empty = overviews(CAMPAIGN, {"node-0": shares["node-0"], "empty": nothing})["empty"]
    assert (empty.rows, empty.classes, empty.distance) == (0, (0.0, 0.0), None)
    assert overviews(CAMPAIGN, {}) == {}


def test_tables_of_unlike_sizes_are_told_where_a_median_counts_them_alike(shares):
    seen = overviews(CAMPAIGN, {**shares, "small": share_of(9, 40)}).values()
    assert "the median counts each group alike" in unlike_sizes(seen, 6)
    assert unlike_sizes(seen, 1) is None
    assert unlike_sizes(list(seen)[:5], 5) is None
    assert unlike_sizes([], 5) is None


def changed(place, value):
    return lambda vector: vector.__setitem__(place, value)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (changed(0, MOST_ROWS + 1), "from 0 to 1099511627776 rows"),
        (changed(1, -(1 << 62)), "rows"),
        (changed(2, 10_000 * GRID), "sums of age"),
        (changed(3, -10_000 * GRID), "sums of age"),
        (changed(4, 10_000 * GRID), "sums of age"),
        (changed(5, -2_000 * GRID), "sums of age"),
        (changed(6, 5_000), "sums of ward"),
        (changed(7, -5_000), "sums of ward"),
    ],
)
def test_what_no_table_gives_is_refused_though_it_is_still_read(shares, change, problem):
    vector = decode_share(shares["node-0"], CAMPAIGN)
    change(vector)
    share = encode_share(CAMPAIGN, vector)
    with pytest.raises(DocumentError, match=problem) as caught:
        check_possible(CAMPAIGN, share)
    assert caught.value.code == "impossible-share"
    assert FederatedState(CAMPAIGN, {"stored before": share}).nodes == ("stored before",)


def test_no_share_of_a_table_is_refused():
    """Less than once in 10^8 runs of this test."""
    warnings.simplefilter("ignore")
    for epsilon in (0.01, 1.0):
        campaign = Campaign.compile(
            draft(number("age", 0, 110), text("ward", "a", "b"), privacy={"epsilon": epsilon}, label=CAMPAIGN_LABEL)
        )
        for seed, rows in enumerate((0, 1, 5, 800) * 5):
            frame, labels = table(seed, rows)
            frame["age"] = [0, 55, 110][seed % 3]
            check_possible(campaign, node_statistics(campaign, frame.assign(ward="a"), labels))
            check_possible(campaign, encode_share(campaign, np.array([*LIE[:8], 0, 0])))


CAMPAIGN_LABEL = {"name": "again", "classes": ["yes", "no"]}
