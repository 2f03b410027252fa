"""The bins of a model's score: chosen from the model alone, alike everywhere, with 0 among their edges."""

import json
from dataclasses import replace

import pytest
from evaluated import U, V, draft, model

from protocols import Campaign
from protocols.document.evaluation import MOST_BINS
from protocols.drafting.edges import score_edges
from protocols.model import Model

NUMBER = {"name": "size", "kind": "gaussian", "low": 0, "high": 10, "mean": [3.0, 6.0], "variance": [4.0, 4.0]}
RARE = (0.98, 0.02)


def read(described):
    return Model.from_json(json.dumps(described))


@pytest.mark.parametrize(
    "features", [(), (U,), (U, V), (NUMBER,), (U, V, NUMBER)], ids=["none", "one", "two", "number", "all"]
)
@pytest.mark.parametrize("bins", range(2, MOST_BINS + 1))
def test_edges_rise_have_0_among_them_and_are_fewer_than_the_bins(features, bins):
    edges = score_edges(read(model(*features)), bins)
    assert list(edges) == sorted({round(edge, 2) for edge in edges})
    assert 0 in edges
    assert len(edges) < bins
    assert edges == score_edges(read(model(*features)), bins)


def test_edges_lie_where_the_scores_do_with_as_many_records_of_a_rare_class():
    """A class of 2 % moves every score by ln(.02 / .98) = -3.9; half of the records drawn are of it all the same."""
    even, rare = (score_edges(read(model(U, NUMBER, prior=prior))) for prior in ((0.5, 0.5), RARE))
    assert even[0] < -1 < 1 < even[-1]
    assert rare[0] < -5
    assert rare[-1] > 0


def test_a_model_that_is_sure_has_finite_edges():
    sure = {**V, "likelihood": [[1.0, 0.0], [0.0, 1.0]]}
    edges = score_edges(read(model(sure, U)))
    assert max(abs(edge) for edge in edges) <= 700
    assert 0 in edges


def test_a_draft_without_edges_has_those_of_its_model_and_one_with_edges_keeps_them():
    chosen, said = (
        Campaign.compile(draft(asks="score", evaluation={"model": model(U, V), **edges}))
        for edges in ({}, {"edges": [-1, 0, 2.5]})
    )
    assert chosen.evaluation.edges == score_edges(chosen.evaluation.model)
    assert said.evaluation.edges == (-1.0, 0.0, 2.5)
    assert said.evaluation == replace(chosen.evaluation, edges=(-1.0, 0.0, 2.5))


@pytest.mark.parametrize("bins", [0, 1, 9])
def test_other_numbers_of_bins_are_refused(bins):
    with pytest.raises(ValueError, match="from 2 to 8"):
        score_edges(read(model(U)), bins)
