"""Where two questions are asked as one: from which epsilon on, of what, what an author can say, what it costs."""

from __future__ import annotations

import json

import pytest

from protocols import Campaign, DocumentError, DraftError
from protocols.document.verification import verify
from protocols.drafting.choice import LEAST_JOINT_EPSILON, contrast_variance, make_sign, make_signs, signs_pay
from protocols.exact.rationals import exact_epsilon
from protocols.mechanisms import LaplaceVector
from protocols.proofs.enumeration import ENUMERATION, verify_thoroughly

NUMBER = {"name": "x", "kind": "continuous", "missing": False, "low": 0, "high": 1}
TWO = {"kind": "categorical", "missing": False, "values": ["p", "q"]}
BINNED = {"name": "b", "kind": "continuous", "missing": False, "low": 0, "high": 1, "bins": 2}


def draft(*features, classes=2, epsilon=3, **privacy):
    return {
        "version": 1,
        "title": "t",
        "label": {"name": "y", "classes": [f"c{c}" for c in range(classes)]},
        "features": list(features) or [NUMBER],
        "privacy": {"epsilon": epsilon, **privacy},
    }


def kinds(*features, **changes):
    return [question.kind for question in Campaign.compile(draft(*features, **changes)).questions]


def two(name, **changes):
    return {"name": name, **TWO, **changes}


def test_value_and_square_of_a_number_become_one_question_of_the_devices_of_both():
    (_, asked) = Campaign.compile(draft({**NUMBER, "weight": 3})).questions
    assert (asked.kind, asked.feature, asked.other, asked.group) == ("signs", "x", None, 1)
    assert (asked.encoding, asked.mechanism.name, asked.domain_size, asked.weight) == ("sign", "de", 8, 6)


def test_two_features_of_two_values_become_one_question_with_the_class():
    features = [two("u"), two("v", weight=2), NUMBER, BINNED, two("w", weight=2), two("alone")]
    asked = [(q.kind, q.feature, q.other, q.group, q.weight) for q in Campaign.compile(draft(*features)).questions]
    assert asked == [
        ("label", None, None, 0, 1),
        ("triple", "u", "b", 1, 2),
        ("triple", "v", "w", 2, 4),
        ("signs", "x", None, 3, 2),
        ("pair", "alone", None, 6, 1),
    ]


@pytest.mark.parametrize(("classes", "least"), [(2, 2.5), (3, 2.5), (5, 3), (10, 3.5)])
def test_auto_asks_so_from_where_the_predicted_variance_is_lower(classes, least):
    """In steps of a quarter; below 2.5 never, though two classes would pay from about 2 on."""
    steps = [step / 4 for step in range(4, 21)]
    joined = [step for step in steps if "signs" in kinds(NUMBER, two("u"), two("v"), classes=classes, epsilon=step)]
    triples = [step for step in steps if "triple" in kinds(two("u"), two("v"), classes=classes, epsilon=step)]
    assert joined == [step for step in steps if step >= least]
    assert triples[0] <= least
    assert triples[0] >= LEAST_JOINT_EPSILON


def test_a_vector_of_numbers_that_is_hardly_noisy_is_asked_for_as_it_is():
    assert "signs" in kinds(epsilon=8)
    assert kinds(epsilon=20) == ["label", "value", "square"]
    laplace = LaplaceVector.make(2, exact_epsilon(20))
    assert not signs_pay(laplace, 2, exact_epsilon(20))


@pytest.mark.parametrize(("epsilon", "ratio"), [(2.5, 1.25), (3, 1.45), (4, 1.75)])
def test_one_question_has_the_published_part_of_the_variance_of_two(epsilon, ratio):
    """Two classes, records at the middle of the range: the bits' own variance is 1 / 2."""
    exact = exact_epsilon(epsilon)
    one, two_of_them = (contrast_variance(made(2, exact), 2) + 1 / 2 for made in (make_signs, make_sign))
    assert 2 * two_of_them / one == pytest.approx(ratio, abs=0.005)


@pytest.mark.parametrize(
    "changes",
    [
        {"joint": False},
        {"continuous": "sign", "discrete": "de"},
        {"epsilon": 2.4999},
        {"epsilon": 12, "answers": "all"},
    ],
)
def test_elsewhere_two_questions_are_asked(changes):
    asked = kinds(NUMBER, *(two(f"f{n}") for n in range(4)), **{"epsilon": 4, **changes})
    assert asked == ["label", "value", "square", *["pair"] * 4]


@pytest.mark.parametrize("joint", [None, True])
def test_what_may_be_missing_is_asked_about_by_questions_of_its_own(joint):
    """Also where it is asked for, and beside features that are joined."""
    open_ones = [{**NUMBER, "name": "n", "missing": True}, two("a", missing=True), two("b", missing=True)]
    asked = [
        (q.kind, q.feature, q.domain_size)
        for q in Campaign.compile(draft(NUMBER, two("u"), *open_ones, two("v"), joint=joint)).questions[1:]
    ]
    assert asked == [
        ("signs", "x", 8),
        ("triple", "u", 8),
        ("value", "n", 6),
        ("square", "n", 6),
        ("pair", "a", 6),
        ("pair", "b", 6),
    ]


def test_who_answers_everything_answers_both_moments_at_once_but_no_triple():
    """A triple would be the answer of two groups."""
    assert kinds(NUMBER, two("u"), two("v"), epsilon=12, answers="all") == ["label", "signs", "pair", "pair"]


def test_an_author_can_ask_for_it_with_other_mechanisms_and_where_auto_would_not():
    asked = Campaign.compile(
        draft(NUMBER, two("u"), two("v"), classes=10, joint=True, continuous="sign", discrete="ss")
    ).questions
    assert [(q.kind, q.mechanism.name, q.domain_size) for q in asked[1:]] == [("signs", "ss", 40), ("triple", "ss", 40)]


def test_an_author_who_says_nothing_says_the_default():
    assert Campaign.compile(draft()).id == Campaign.compile(draft(joint=None)).id
    with pytest.raises(DraftError, match=r"privacy\.joint: must be true or false, not 1"):
        Campaign.compile(draft(joint=1))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 2.4}, "from an epsilon of 2.5 a question on; here it is 2.4"),
        ({"epsilon": 6, "answers": "all", "continuous": "sign"}, "here it is 2"),
        ({"continuous": "laplace"}, "continuous is laplace; say sign"),
    ],
)
def test_what_cannot_be_joined_is_refused_where_it_is_asked_for(changes, message):
    with pytest.raises(DraftError, match=r"privacy\.joint") as refused:
        Campaign.compile(draft(NUMBER, two("u"), joint=True, **changes))
    assert message in str(refused.value)


@pytest.mark.parametrize("prove", [verify, verify_thoroughly])
@pytest.mark.parametrize("privacy", [{}, {"epsilon": 12, "answers": "all"}])
def test_a_joint_question_keeps_its_promise_by_closed_form_and_by_enumeration(prove, privacy):
    campaign = Campaign.compile(draft(NUMBER, two("u"), two("v"), joint=True, **privacy))
    verification = prove(campaign)
    assert verification.holds
    assert verification.loss <= exact_epsilon(campaign.privacy.epsilon)
    joined = [check for check in verification.questions if check.question.kind in ("signs", "triple")]
    assert joined
    assert prove is verify or {check.worst.method for check in joined} == {ENUMERATION}


@pytest.mark.parametrize(
    ("question", "change"),
    [
        (1, {"domain_size": 4}),
        (1, {"encoding": "moment"}),
        (1, {"encoding": "index"}),
        (1, {"other": "u"}),
        (1, {"feature": "u", "group": 2}),
        (2, {"domain_size": 4}),
        (2, {"encoding": "sign"}),
        (2, {"other": "u"}),
        (2, {"other": "x"}),
        (2, {"other": "n"}),
        (2, {"other": None}),
        (2, {"feature": "v"}),
        (2, {"kind": "pair"}),
        (3, {"kind": "triple", "other": "u", "domain_size": 8}),
    ],
)
def test_a_joint_question_of_another_shape_is_refused(question, change):
    three = {"name": "n", "kind": "categorical", "values": ["1", "2", "3"]}
    content = json.loads(Campaign.compile(draft(NUMBER, two("u"), two("v"), three)).document)
    content["questions"][question].update(change)
    with pytest.raises(DocumentError) as refused:
        Campaign.parse(json.dumps(content).encode())
    assert refused.value.code in ("invalid-document", "loss-above-epsilon")
    assert "questions[" in str(refused.value)
