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


@pytest.mark.parametrize(
    ("epsilon", "ratio", "missing"),
    [(2.5, 1.25, False), (3, 1.45, False), (4, 1.75, False), (2.5, 1.28, True), (3, 1.47, True), (4, 1.75, True)],
)
def test_one_question_has_the_published_part_of_the_variance_of_two(epsilon, ratio, missing):
    """Two classes, records at the middle of the range: the bits' own variance is 1 / 2."""
    made = [make(2, exact_epsilon(epsilon), missing=missing) for make in (make_signs, make_sign)]
    one, two_of_them = (contrast_variance(mechanism, 2) + 1 / 2 for mechanism in made)
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


def test_a_number_that_may_be_missing_has_a_fifth_cell_and_two_values_that_may_be_missing_are_asked_alone():
    open_ones = [{**NUMBER, "name": "n", "missing": True}, two("a", missing=True), two("b", missing=True)]
    asked = [
        (q.kind, q.feature, q.domain_size, q.weight)
        for q in Campaign.compile(draft(NUMBER, two("u"), *open_ones, two("v"))).questions[1:]
    ]
    assert asked == [
        ("signs", "x", 8, 2),
        ("triple", "u", 8, 2),
        ("signs", "n", 10, 2),
        ("pair", "a", 6, 1),
        ("pair", "b", 6, 1),
    ]


@pytest.mark.parametrize("classes", [2, 3, 5, 10])
def test_auto_asks_so_of_what_may_be_missing_from_two_and_a_half_on(classes):
    """In steps of a quarter, by default, though three classes would pay from 1 on; there is no vector of numbers to ask
    for instead, however large epsilon is.
    """
    number = {name: value for name, value in NUMBER.items() if name != "missing"}
    steps = [step / 4 for step in (*range(4, 21), 80, 128)]
    joined = [step for step in steps if "signs" in kinds(number, classes=classes, epsilon=step)]
    assert joined == [step for step in steps if step >= LEAST_JOINT_EPSILON]


@pytest.mark.parametrize(
    ("features", "privacy", "words"),
    [
        (
            [NUMBER, two("u"), two("v", missing=True)],
            {},
            'v, of two values, may be missing.*declare v "missing": false',
        ),
        ([{**BINNED, "missing": True}], {}, "b, of two values, may be missing"),
        ([two("u")], {}, "none can be made of u: it takes a number without bins, or two features of one weight"),
        ([two("u"), two("v", weight=2)], {}, "none can be made of u, v"),
        ([two("u"), two("v")], {"answers": "all", "epsilon": 12}, "of u, v: it takes a number without bins. Leave"),
        ([{"name": f"n{i}", "kind": "continuous", "low": 0, "high": 1, "bins": 3} for i in range(4)], {}, "n2, ...:"),
    ],
)
def test_an_author_who_asks_for_what_cannot_be_joined_hears_of_which_feature(features, privacy, words):
    with pytest.raises(DraftError, match=r"privacy\.joint: .*" + words):
        Campaign.compile(draft(*features, **{"joint": True, **privacy}))
    assert Campaign.compile(draft(*features, **privacy))


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
@pytest.mark.parametrize("missing", [False, True])
def test_a_joint_question_keeps_its_promise_by_closed_form_and_by_enumeration(prove, privacy, missing):
    campaign = Campaign.compile(draft({**NUMBER, "missing": missing}, two("u"), two("v"), joint=True, **privacy))
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
