"""From drafts to documents."""

import hashlib
import json
from base64 import urlsafe_b64encode
from datetime import datetime, timezone
from fractions import Fraction

import pytest
from credit_draft import ABSENT, DRAFT, changed, document_of, draft_with

from protocols import Campaign
from protocols.exact import exact_epsilon


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


def test_the_document_is_the_draft_and_its_resolved_questions():
    document = document_of(Campaign.compile(DRAFT))
    for key in ("version", "title", "purpose", "projection", "study", "opens", "closes"):
        assert document[key] == DRAFT[key]
    for question in document["questions"]:
        assert question["mechanism"] != "auto"
        assert question["parameters"]
    digest = hashlib.sha256(Campaign.compile(DRAFT).document).digest()
    assert Campaign.compile(DRAFT).id == urlsafe_b64encode(digest).decode().rstrip("=")


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
        *((place, ABSENT) for place in (("study",), ("privacy", "answers"))),
    ],
)
def test_spelling_out_a_default_or_writing_a_number_differently_does_not_change_the_id(place, value):
    assert Campaign.compile(changed(DRAFT, place, value)).id == Campaign.compile(DRAFT).id


@pytest.mark.parametrize("answers", ["one", "all"])
def test_parsing_a_compiled_document_gives_the_same_campaign(answers):
    compiled = Campaign.compile(draft_with("privacy", "answers", value=answers))
    parsed = Campaign.parse(compiled.document, compiled.id)
    assert parsed == compiled
    assert document_of(parsed)["questions"] == [question.to_json() for question in parsed.questions]


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
