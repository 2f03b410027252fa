"""What a draft of a round of moments or of an evaluation asks for in vain is refused, and named; a document is not.

The bins of a model's score: chosen from the model alone, alike everywhere, with 0 among their edges.
"""

import json
from dataclasses import replace

import pytest
from evaluated import U, V, draft, model

from protocols import Campaign, DraftError
from protocols.document.authored import MOST_BINS
from protocols.drafting.compiling import score_edges
from protocols.model import Model

NUMBERS = [{"name": name, "kind": "continuous", "low": 0, "high": 1} for name in ("x", "z")]
MOMENTS = {"asks": "moments", "features": NUMBERS}
SCORE = {"asks": "score", "evaluation": {"model": model()}}
SIZE = {"name": "size", "kind": "gaussian", "low": 0, "high": 10, "mean": [3.0, 6.0], "variance": [4.0, 4.0]}
RARE = (0.98, 0.02)
ALONE = {"name": "y", "classes": ["a", "b"], "weight": 0}


def refused(asked, privacy, **changes):
    with pytest.raises(DraftError) as told:
        Campaign.compile(draft(**{**asked, **changes}, privacy={"epsilon": 3, **privacy}))
    return told.value


def test_a_mechanism_for_numbers_is_refused_in_an_evaluation_round_and_bins_are_in_one_of_moments():
    told = refused(SCORE, {"continuous": "sign"})
    assert told.field == "privacy.continuous"
    assert "is sign, and an evaluation round asks about no feature" in told.problem
    told = refused(MOMENTS, {}, features=[NUMBERS[0], {**NUMBERS[1], "bins": 4}])
    assert told.field == "features[1].bins"
    assert "is 4, and a round of moments asks for the number itself. Leave it out here" in told.problem


@pytest.mark.parametrize("privacy", [{"discrete": "oue"}, {"theta": 0.5}, {"discrete": "the", "theta": 0.5}])
def test_a_mechanism_for_the_label_is_refused_in_a_round_of_moments_that_never_asks_for_it_alone(privacy):
    told = refused(MOMENTS, privacy, label=ALONE)
    assert told.field == f"privacy.{next(iter(privacy))}"
    assert "label.weight 1" in told.problem
    assert Campaign.compile(draft(**MOMENTS, privacy={"epsilon": 3, **privacy}))


@pytest.mark.parametrize("asked", [SCORE, MOMENTS], ids=["score", "moments"])
def test_the_defaults_of_a_round_can_be_said(asked):
    said = {"theta": None, "continuous": "auto", "discrete": "auto", "answers": "one"}
    plain = Campaign.compile(draft(**asked))
    assert Campaign.compile(draft(**asked, privacy={"epsilon": 1, **said})).questions == plain.questions


def test_the_mechanism_of_the_score_and_its_threshold_are_the_authors_and_right_or_not_is_always_one_bit_by_de():
    privacy = {"epsilon": 1, "discrete": "the", "theta": 0.25}
    right, score = Campaign.compile(draft(**SCORE, privacy=privacy)).questions
    assert (right.mechanism.name, right.domain_size) == ("de", 2)
    assert score.mechanism.name == "the"
    best = Campaign.compile(draft(**SCORE, privacy={**privacy, "theta": None})).questions[1]
    assert score.mechanism != best.mechanism


def test_a_document_that_says_so_was_published_and_is_read():
    content = json.loads(Campaign.compile(draft(**SCORE)).document)
    content["privacy"] |= {"continuous": "sign", "theta": 0.25}
    assert Campaign.parse(json.dumps(content).encode()).privacy.theta == 0.25


def read(described):
    return Model.from_json(json.dumps(described))


@pytest.mark.parametrize(
    "features", [(), (U,), (U, V), (SIZE,), (U, V, SIZE)], ids=["none", "one", "two", "number", "all"]
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
    even, rare = (score_edges(read(model(U, SIZE, prior=prior))) for prior in ((0.5, 0.5), RARE))
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
