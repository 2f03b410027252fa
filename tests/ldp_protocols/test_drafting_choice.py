"""The choice of mechanism: least predicted variance; which drafts tell the classes' shares, which a model needs, and
what ``auto`` counts them for.
"""

import math
from fractions import Fraction

import drafts
import pytest

from ldp_protocols import Campaign, DraftError
from ldp_protocols.document.questions import MOMENT, SIGN, VALUE
from ldp_protocols.drafting import make_continuous, make_discrete, make_sign
from ldp_protocols.exact import exact_epsilon
from ldp_protocols.mechanisms import DISCRETE, MOMENTS, PURE, SubsetSelection

NUMBER = drafts.number("x")
BINNED = {**NUMBER, "name": "b", "bins": 4}
EPSILONS = (0.01, 0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 16.0)
GAINS = {
    (8, 0.5): 1.33,
    (16, 0.5): 1.15,
    (8, 1.0): 1.25,
    (16, 1.0): 1.18,
    (32, 1.0): 1.08,
    (16, 2.0): 1.14,
    (128, 4.0): 1.20,
}


def draft(*features, weight=1, classes=2, **privacy):
    label = {"name": "y", "classes": [f"c{c}" for c in range(classes)], "weight": weight}
    return drafts.draft(*features, label=label, privacy={"epsilon": 1.0, **privacy})


def shares(asked):
    """Of each question among the devices, by kind and feature."""
    questions = Campaign.compile(asked).questions
    total = sum(question.weight for question in questions)
    return {(one.kind, one.feature): Fraction(one.weight, total) for one in questions}


def test_of_a_label_that_is_left_open_a_twentieth_of_the_devices_answer_the_class_alone():
    twice = {"name": "c", "kind": "categorical", "values": ["p", "q", "r"], "weight": 2}
    asked = shares(draft(BINNED, twice, weight=None))
    assert asked == {("label", None): Fraction(1, 20), ("pair", "b"): Fraction(19, 60), ("pair", "c"): Fraction(19, 30)}
    sparse = [{**BINNED, "name": f"b{place}"} for place in range(40)]
    assert shares(draft(*sparse, weight=None))["label", None] == Fraction(1, 20)


@pytest.mark.parametrize(
    ("features", "privacy"),
    [((BINNED, NUMBER), {}), ((BINNED,), {"answers": "all"}), ((NUMBER,), {"continuous": "laplace"})],
    ids=["a number by itself", "everything answered", "values alone"],
)
def test_elsewhere_a_label_that_is_left_open_weighs_one(features, privacy):
    left, said = (Campaign.compile(draft(*features, weight=weight, **privacy)) for weight in (None, 1))
    assert left.questions == said.questions
    assert (left.label.weight, said.label.weight) == (None, 1)


def test_a_label_left_out_and_null_are_one_campaign_and_what_is_said_is_kept():
    asked = draft(BINNED, weight=None)
    without = {**asked, "label": {name: value for name, value in asked["label"].items() if name != "weight"}}
    assert Campaign.compile(asked).id == Campaign.compile(without).id
    assert shares(draft(BINNED, {**BINNED, "name": "c"}, weight=2))["label", None] == Fraction(1, 2)


@pytest.mark.parametrize("answers", ["one", "all"])
@pytest.mark.parametrize("continuous", ["laplace", "onebit"])
def test_a_draft_whose_questions_never_tell_the_class_is_refused_with_the_remedy(continuous, answers):
    with pytest.raises(DraftError, match=r"Ask for the label too \(1, or leave it out\).*sign") as refused:
        Campaign.compile(draft(NUMBER, weight=0, continuous=continuous, answers=answers))
    assert refused.value.field == "label.weight"
    assert continuous in refused.value.problem


@pytest.mark.parametrize(
    "asked",
    [
        draft(NUMBER, weight=1, continuous="laplace"),
        draft(NUMBER, BINNED, weight=0, continuous="laplace"),
        draft(NUMBER, weight=0, continuous="sign"),
    ],
    ids=["the label", "a table", "signs"],
)
def test_one_question_that_tells_the_class_is_enough(asked):
    assert any(question.encoding != MOMENT for question in Campaign.compile(asked).questions)


@pytest.mark.parametrize("answers", ["one", "all"])
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("classes", [2, 10])
def test_auto_tells_the_class_where_nothing_else_does(classes, epsilon, answers):
    campaign = Campaign.compile(draft(NUMBER, weight=0, classes=classes, epsilon=epsilon, answers=answers))
    assert {question.encoding for question in campaign.questions} == {SIGN}


def test_a_round_of_moments_needs_no_classes():
    """The principal components of all people are those of no class."""
    asked = {**draft(NUMBER, weight=0, continuous="laplace"), "asks": "moments", "study": "s"}
    assert {question.encoding for question in Campaign.compile(asked).questions} == {MOMENT}


def test_auto_values_the_class_counts_of_signs_the_more_the_less_else_tells_them():
    """At epsilon 5 and two classes a Laplace vector's sums are the better ones, and signs' shares decide."""
    epsilon = exact_epsilon(5.0)
    assert make_continuous("auto", 2, epsilon, classes_told=math.inf).name == "laplace"
    told = [make_continuous("auto", 2, epsilon, classes_told=told).name in PURE for told in (0.0, 0.1, 1.0, 100.0)]
    assert told == sorted(told, reverse=True)
    assert (told[0], told[-1]) == (True, False)
    alone, among_tables = (
        next(q for q in Campaign.compile(asked).questions if q.kind == VALUE)
        for asked in (
            draft(NUMBER, epsilon=5.0),
            draft(NUMBER, *({**BINNED, "name": f"b{i}"} for i in range(8)), epsilon=5.0),
        )
    )
    assert (alone.encoding, among_tables.encoding) == (SIGN, MOMENT)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_auto_for_one_class_compares_the_sums_alone(epsilon):
    """A product's share needs no estimate: it is 1. The values' own spread makes a stochastic bit dearer by 2/3."""
    exact = exact_epsilon(epsilon)
    sign = make_sign(1, exact)
    costs = {name: kind.make(1, exact).noise_variance(1.0) for name, kind in MOMENTS.items()}
    costs[sign.name] = sign.contrast_variance(0.5, 0.5) + 2 / 3
    assert make_continuous("auto", 1, exact).name == min(costs, key=costs.__getitem__)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 0.7, 1.0, 1.3, 2.0, 4.0, 8.0])
@pytest.mark.parametrize("size", [2, 3, 4, 5, 6, 8, 16, 32, 64, 128, 1000])
def test_auto_is_the_mechanism_of_least_predicted_variance(size, epsilon):
    promised = exact_epsilon(epsilon)
    chosen = make_discrete("auto", size, promised)
    variances = {name: kind.make(size, promised).noise_variance(1 / size) for name, kind in DISCRETE.items()}
    assert variances[chosen.name] == min(variances.values())


@pytest.mark.parametrize("epsilon", [0.2, 0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("size", [2, 4, 8, 16, 32, 64, 128, 200])
def test_subset_selection_is_never_worse_than_what_it_contains_and_gains_what_is_documented(size, epsilon):
    promised = exact_epsilon(epsilon)
    best = min(DISCRETE[name].make(size, promised).noise_variance(1 / size) for name in ("de", "sue", "oue"))
    gain = best / SubsetSelection.make(size, promised).noise_variance(1 / size)
    assert gain >= 1 - 1e-12
    assert gain == pytest.approx(GAINS.get((size, epsilon), gain), abs=0.02)
