"""From drafts to documents."""

import json
import math
import re
from dataclasses import replace
from datetime import datetime, timezone
from fractions import Fraction

import pytest
from credit_draft import ABSENT, DRAFT, changed, document_of, draft_with
from drafts import draft as asking
from drafts import number, text
from evaluated import FEATURES, U, V, draft, model

from ldp_protocols import Campaign, DraftError
from ldp_protocols.document.model import Model
from ldp_protocols.drafting import score_edges
from ldp_protocols.exact import exact_epsilon

MOST_BINS = 8


def test_a_draft_compiles_to_the_label_question_one_per_discrete_feature_and_two_per_gaussian_one():
    campaign = Campaign.compile(DRAFT)
    shapes = [(q.kind, q.feature, q.group, q.epsilon, q.weight) for q in campaign.questions]
    assert shapes == [
        ("label", None, 0, 1, 1),
        ("pair", "age", 1, 1, 1),
        ("pair", "income", 2, 1, 1),
        ("value", "hours", 3, 1, 1),
        ("square", "hours", 3, 1, 1),
    ]
    assert [q.domain_size for q in campaign.questions[:3]] == [2, 6, 16]
    assert [q.index for q in campaign.questions] == list(range(5))
    assert [len(group) for group in campaign.groups] == [1, 1, 1, 2]
    assert campaign.closes == datetime(2027, 1, 1, tzinfo=timezone.utc)
    everything = Campaign.compile(draft_with("privacy", "answers", value="all"))
    assert {question.epsilon for question in everything.questions} == {0.25}, "split over the groups"


def test_the_key_order_of_the_draft_does_not_matter():
    def reversed_keys(value):
        if isinstance(value, dict):
            return {key: reversed_keys(value[key]) for key in reversed(value)}
        return [reversed_keys(member) for member in value] if isinstance(value, list) else value

    assert list(reversed_keys(DRAFT)) != list(DRAFT)
    for same in (reversed_keys(DRAFT), json.dumps(DRAFT), json.dumps(DRAFT).encode()):
        assert Campaign.compile(same).id == Campaign.compile(DRAFT).id


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("privacy", "epsilon"), 1),
        *((("features", 2, "low"), zero) for zero in (0.0, -0.0)),
        (("features", 2, "high"), 1e2),
        (("features", 2, "bins"), None),
        *((("features", 0, "weight"), one) for one in (1, 1.0)),
        (("features", 1, "bins"), 8.0),
        (("version",), 1.0),
        (("label", "weight"), None),
        *((("features", 0, "ordered"), no) for no in (None, False)),
        *((place, ABSENT) for place in (("study",), ("privacy", "answers"))),
    ],
)
def test_spelling_out_a_default_or_writing_a_number_differently_does_not_change_the_id(place, value):
    assert Campaign.compile(changed(DRAFT, place, value)).id == Campaign.compile(DRAFT).id


@pytest.mark.parametrize("discrete", ["de", "sue", "oue", "she", "the", "ss"])
@pytest.mark.parametrize("continuous", ["laplace", "onebit", "sign"])
@pytest.mark.parametrize("answers", ["one", "all"])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1, 7.5])
def test_a_campaign_never_loses_more_than_its_epsilon(discrete, continuous, answers, epsilon):
    privacy = {"epsilon": epsilon, "answers": answers, "discrete": discrete, "continuous": continuous}
    campaign = Campaign.compile({**DRAFT, "privacy": privacy})
    promised = exact_epsilon(epsilon)
    worst = [max(question.loss() for question in group) for group in campaign.groups]
    assert campaign.loss == (sum(worst) if answers == "all" else max(worst))
    assert campaign.loss <= promised
    assert Fraction(campaign.realised_epsilon) <= Fraction(epsilon)
    if discrete != "the":
        assert promised - campaign.loss < promised / 10**9
    mechanisms = {question.kind: question.mechanism.name for question in campaign.questions}
    assert mechanisms["pair"] == discrete
    assert mechanisms["value"] == continuous or (continuous, campaign.questions[3].encoding) == ("sign", "sign")


@pytest.mark.parametrize("answers", ["one", "all"])
def test_when_anything_is_published_is_a_promise_of_the_document(answers):
    promising = Campaign.compile({**DRAFT, "privacy": {"epsilon": 1.0, "answers": answers, "release_every": 5000}})
    assert Campaign.parse(promising.document, promising.id).privacy.release_every == 5000
    assert document_of(promising)["privacy"]["release_every"] == 5000
    assert b"release_every" not in Campaign.compile(draft_with("privacy", "release_every", value=None)).document


def test_weights_of_the_draft_are_those_of_the_draw():
    weighted = draft_with("features", 0, "weight", value=5)
    assert [q.weight for q in Campaign.compile(changed(weighted, ("label", "weight"), 3)).questions] == [3, 5, 1, 1, 1]
    unasked = Campaign.compile(draft_with("label", "weight", value=0))
    asked = [(question.kind, question.group) for question in unasked.questions]
    assert asked == [("pair", 1), ("pair", 2), ("value", 3), ("square", 3)]


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


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.7, 1, 1.1, 3.3])
def test_a_total_that_is_split_over_any_number_of_groups_is_never_exceeded(epsilon):
    for groups in range(2, 14):
        features = [text(f"f{number}", "1", "2") for number in range(groups - 1)]
        privacy = {"epsilon": epsilon, "answers": "all", "discrete": "she"}
        campaign = Campaign.compile(draft(features=features, privacy=privacy, study=None))
        assert len(campaign.pools) == groups
        assert campaign.loss <= exact_epsilon(epsilon)
        assert campaign.loss >= exact_epsilon(epsilon) * (1 - Fraction(1, 10**9))


def test_the_last_epsilon_threshold_and_number_of_cells_that_is_taken_and_the_first_that_is_not():
    def compiled(features=FEATURES, **privacy):
        return Campaign.compile(draft(features=features, privacy={"epsilon": 1, **privacy}))

    assert compiled(epsilon=1e-6).privacy.epsilon == 1e-6
    with pytest.raises(DraftError, match=r"privacy\.epsilon"):
        compiled(epsilon=9.99e-7)
    assert compiled(discrete="the", theta=1).privacy.theta == 1
    with pytest.raises(DraftError, match=r"privacy\.theta"):
        compiled(discrete="the", theta=1.0000001)
    # (values + 1) * classes = 2^18
    bins = [*[16_384] * 7, 16_383]
    assert sum(question.domain_size for question in compiled(binned(bins), discrete="de").questions) == 1 << 18
    with pytest.raises(DraftError, match="262144"):
        compiled(binned([*bins[:-1], 16_384]), discrete="de")


def binned(sizes):
    return [number(f"x{place}", bins=size) for place, size in enumerate(sizes)]


def test_a_value_may_be_a_blank_and_a_name_may_not():
    campaign = Campaign.compile(draft(features=[text("u", " ", "a")]))
    assert campaign.feature("u").index_of(" ") == 0
    with pytest.raises(DraftError, match="non-empty"):
        Campaign.compile(draft(features=[text("u", "", "a")]))
    with pytest.raises(DraftError, match=r"features\[0\]\.name"):
        Campaign.compile(draft(features=[text(" ", "b", "a")]))


def test_a_number_may_say_its_edges_which_are_its_bounds_and_bins_too():
    edges = [0, 18, 25, 35, 65, 120]
    short = Campaign.compile(asking({"name": "age", "kind": "continuous", "edges": edges, "missing": False}))
    whole = Campaign.compile(asking(number("age", 0, 120, bins=5, edges=edges)))
    assert short.document == whole.document
    feature = Campaign.parse(short.document, short.id).features[0]
    assert (feature.low, feature.high, feature.bins, feature.edges) == (0, 120, 5, tuple(edges))
    assert feature.names == ("[0, 18)", "[18, 25)", "[25, 35)", "[35, 65)", "[65, 120]")
    values = (-5, 0, 17.999, 18, 64.999, 65, 120, 500, "30", None, "old")
    assert [feature.index_of(value) for value in values] == [0, 0, 0, 1, 3, 4, 4, 4, 2, None, None]
    even = Campaign.compile(asking(number("age", 0, 120, bins=5)))
    assert b"edges" not in even.document
    assert [one.to_json() for one in even.questions] == [one.to_json() for one in short.questions]


@pytest.mark.parametrize(
    ("said", "field", "right"),
    [
        ({"edges": [0, 120]}, "edges", "at least three numbers that rise"),
        ({"edges": "0 18 120"}, "edges", "at least three numbers that rise"),
        ({"edges": []}, "edges", "at least three numbers that rise"),
        ({"edges": [0, 18, 18, 120]}, "edges", "must rise from low, 0, to high, 120"),
        ({"edges": [0, 65, 18, 120]}, "edges", "must rise from low, 0, to high, 120"),
        ({"edges": [0, 18, 120], "low": 1}, "edges", "must rise from low, 1, to high, 120"),
        ({"edges": [0, 18, 120], "high": 99}, "edges", "must rise from low, 0, to high, 99"),
        ({"edges": [0, 18, 120], "bins": 3}, "edges", "a list of 4 numbers"),
        ({"edges": [0, "18", 120]}, "edges", "a list of 3 numbers"),
        ({"edges": [0, math.nan, 120]}, "edges[1]", "finite"),
        ({"edges": [0, 18, math.inf]}, "high", "finite"),
    ],
)
def test_edges_that_are_none_are_refused(said, field, right):
    with pytest.raises(DraftError, match=re.escape(right)) as refused:
        Campaign.compile(asking({"name": "age", "kind": "continuous", **said}))
    assert refused.value.field == f"features[0].{field}"
