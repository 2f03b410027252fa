"""Where ``auto`` asks bits instead of pairs, by which weights, and what that costs a device; and evaluation rounds."""

from __future__ import annotations

from fractions import Fraction

import pytest
from evaluated import DESCRIBED, FEATURES, draft, evaluation, model

from protocols import Campaign, DraftError
from protocols.document.verification import verify
from protocols.drafting.questions import MOST_XOR_EPSILON
from protocols.exact.rationals import exact_epsilon
from protocols.proofs.enumeration import ENUMERATION, verify_thoroughly


def kinds(**changes):
    return [question.kind for question in Campaign.compile(draft(**changes)).questions]


def test_of_a_features_devices_76_in_100_answer_the_xor_19_the_value_and_5_the_class():
    binned = {"name": "w", "kind": "continuous", "missing": False, "low": 0, "high": 1, "bins": 2, "weight": 3}
    campaign = Campaign.compile(draft(features=[FEATURES[1], binned, FEATURES[0]]))
    asked = [(q.kind, q.feature, q.group, q.weight) for q in campaign.questions]
    bits = [
        ("xor", "v", 1, 76),
        ("marginal", "v", 1, 19),
        ("xor", "w", 2, 3 * 76),
        ("marginal", "w", 2, 3 * 19),
    ]
    assert asked == [("label", None, 0, 5 * 5 + 5 * 4), *bits, ("pair", "u", 3, 95)]
    label = {**draft()["label"], "weight": 1}
    said = Campaign.compile(draft(label=label, features=[FEATURES[1], binned, FEATURES[0]]))
    asked = [(q.kind, q.feature, q.group, q.weight) for q in said.questions]
    assert asked == [("label", None, 0, 100 + 5 * 4), *bits, ("pair", "u", 3, 100)]
    assert 76 == 0.8 * 95
    assert 19 == 0.2 * 95
    bits = [q for q in campaign.questions if q.kind in ("label", "xor", "marginal")]
    assert {(q.mechanism.name, q.domain_size, q.epsilon) for q in bits} == {("de", 2, 1)}


def test_bits_are_asked_up_to_an_epsilon_of_a_quarter_above_one():
    assert "xor" in kinds(privacy={"epsilon": MOST_XOR_EPSILON})
    assert "xor" not in kinds(privacy={"epsilon": 1.2500001})


@pytest.mark.parametrize(
    "changes",
    [
        {"privacy": {"epsilon": 1, "xor": False}},
        {"privacy": {"epsilon": 1, "discrete": "de"}},
        {"privacy": {"epsilon": 1, "answers": "all"}},
        {"label": {"name": "y", "classes": ["a", "b", "c"]}},
        {"label": {"name": "y", "classes": ["a", "b"], "weight": 0}},
        {"features": [FEATURES[0], FEATURES[2]]},
    ],
)
def test_elsewhere_pairs_are_asked_and_weights_are_the_authors(changes):
    label = {"weight": 1, **changes.get("label", draft()["label"])}
    campaign = Campaign.compile(draft(**{**changes, "label": label}))
    assert not {"xor", "marginal"} & {question.kind for question in campaign.questions}
    assert {question.weight for question in campaign.questions} == {1}


def test_an_author_who_says_nothing_says_the_default():
    told = [Campaign.compile(draft(privacy={"epsilon": 1, **said})).id for said in ({}, {"xor": True}, {"xor": None})]
    assert len(set(told)) == 1
    with pytest.raises(DraftError, match=r"privacy\.xor: must be true or false, not 1"):
        Campaign.compile(draft(privacy={"epsilon": 1, "xor": 1}))


@pytest.mark.parametrize("campaign", [Campaign.compile(draft()), evaluation()], ids=["bits", "score"])
@pytest.mark.parametrize("prove", [verify, verify_thoroughly])
def test_every_bit_keeps_its_promise_by_closed_form_and_by_enumeration(campaign, prove):
    verification = prove(campaign)
    assert verification.holds
    assert verification.loss <= 1
    assert exact_epsilon(1) - verification.loss < Fraction(1, 10**15)
    if prove is verify_thoroughly:
        bits = [check for check in verification.questions if check.question.domain_size == 2]
        assert bits
        assert {check.worst.method for check in bits} == {ENUMERATION}


def test_the_largest_weights_of_an_author_still_compile():
    features = [{**FEATURES[1], "name": f"f{n}", "weight": 65_536} for n in range(1000)]
    label = {"name": "y", "classes": ["a", "b"], "weight": 65_536}
    campaign = Campaign.compile(draft(features=features, label=label))
    assert campaign.questions[0].weight == 65_536 * (100 + 5 * 1000)


def test_an_evaluation_round_asks_every_candidate_alike_by_one_bit():
    campaign = evaluation(privacy={"epsilon": 0.5})
    assert [(q.kind, q.group, q.weight, q.domain_size) for q in campaign.questions] == [
        ("score", place, 1, 2) for place in range(4)
    ]
    assert [one.name for one in campaign.candidates] == ["both", "one", "prior", "wrong"]
    assert Campaign.parse(campaign.document, campaign.id).candidates == campaign.candidates
    assert hash(campaign) == hash(Campaign.parse(campaign.document))


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        (None, "candidates: is missing; it must be a list of 2 to 8"),
        ([{"name": "a", "model": model()}], "2 to 8"),
        ([{"name": "a", "model": model()}] * 2, "a stands in the list twice"),
        ([{"name": "a"}, {"name": "b", "model": model()}], "candidates[0].model"),
        ([{"name": "a", "model": {**model(), "prior": [1, 1]}}] * 2, "candidates[0].model: prior"),
        (
            [{"name": "a", "model": model({**DESCRIBED[1], "name": "z", "likelihood": [[1, 0], [0, 1]]})}] * 2,
            "feature z",
        ),
    ],
)
def test_what_is_wrong_with_candidates_is_named(candidates, message):
    with pytest.raises(DraftError) as refused:
        Campaign.compile(draft(asks="score", candidates=candidates))
    assert message in str(refused.value)


def test_an_evaluation_beyond_the_size_of_a_document_is_refused():
    table = [[1 / 15_999, 1 / 15_999]] * 15_999
    feature = {"name": "u", "kind": "categorical", "values": [str(n) for n in range(15_999)]}
    large = model({**feature, "likelihood": table})
    candidates = [{"name": str(n), "model": large} for n in range(8)]
    with pytest.raises(DraftError, match="a document has at most 4194304 bytes"):
        Campaign.compile(draft(features=[feature], asks="score", candidates=candidates))
