"""Verification of documents: closed form and enumeration agree, and every mechanism keeps its promise."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from ldp_aggregator.mechanisms import facts_of
from ldp_aggregator.mechanisms.enumeration import ENUMERATION, verify_thoroughly, worst_case
from protocols import Campaign
from protocols.document.verification import CLOSED_FORM, QuestionCheck, closed_form, verify
from protocols.exact.coins import ONE
from protocols.exact.rationals import exact_epsilon, exp_bounds
from protocols.mechanisms import (
    DISCRETE,
    MOMENTS,
    DirectEncoding,
    NoisyVector,
    OptimalUnaryEncoding,
    SubsetSelection,
    WorstCase,
)

ALL = {**DISCRETE, **MOMENTS}
DOMAINS = (2, 3, 4, 5, 7, 8, 16, 31, 64, 100, 256, 257, 512, 1000, 1024)
EPSILONS = (0.01, 0.02, 0.1, 0.25, 0.5, 1.0, 1.7, 2.0, 3.0, 5.0, 8.0, 10.0)

DRAFT = {
    "version": 1,
    "title": "t",
    "label": {"name": "y", "classes": ["a", "b", "c"]},
    "features": [
        {"name": "u", "kind": "categorical", "missing": False, "values": ["1", "2", "missing"]},
        {"name": "v", "kind": "continuous", "missing": False, "low": 0, "high": 1},
        {"name": "w", "kind": "continuous", "missing": False, "low": -3, "high": 8, "bins": 40},
    ],
    "privacy": {"epsilon": 1.0},
}


def draft(**privacy):
    return DRAFT | {"privacy": {"epsilon": 1.0, **privacy}}


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", ALL)
def test_the_worst_likelihood_ratio_is_at_most_exp_epsilon_over_the_whole_grid(name, epsilon):
    promised = exact_epsilon(epsilon)
    for size in DOMAINS:
        worst, _ = worst_case(ALL[name].make(size, promised))
        assert worst.stays_within(promised)
        assert worst.loss <= promised
        if name != "the":
            assert promised - worst.loss < Fraction(1, 10**9)


@pytest.mark.parametrize("name", [name for name, kind in ALL.items() if not issubclass(kind, NoisyVector)])
def test_enumeration_and_closed_form_give_the_same_ratio(name):
    for size in range(2, 9):
        for epsilon in (0.01, 1.0, 6.0):
            mechanism = ALL[name].make(size, exact_epsilon(epsilon))
            assert worst_case(mechanism) == (mechanism.worst_case(), ENUMERATION)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0])
@pytest.mark.parametrize("name", ALL)
def test_the_closed_form_stays_within_epsilon_up_to_the_last_unit_of_every_mechanism(name, epsilon):
    promised = exact_epsilon(epsilon)
    for size in DOMAINS:
        assert ALL[name].make(size, promised).worst_case().stays_within(promised)


def test_a_device_enumerates_nothing_and_finds_what_the_enumeration_finds():
    campaign = Campaign.compile(draft(discrete="oue", answers="all"))
    thorough, quick = verify_thoroughly(campaign), verify(campaign)
    assert {check.method for check in quick.questions} == {CLOSED_FORM}
    assert ENUMERATION in {check.method for check in thorough.questions}
    assert [check.worst.loss for check in quick.questions] == [check.worst.loss for check in thorough.questions]
    assert quick.loss == thorough.loss


def test_a_mechanism_that_many_questions_share_is_looked_at_once(monkeypatch):
    """A hundred questions with one mechanism between them, as a campaign of a hundred alike features has."""
    features = [{"name": f"f{i}", "kind": "categorical", "missing": False, "values": list("abcd")} for i in range(100)]
    campaign = Campaign.compile({**draft(discrete="oue", epsilon=0.777), "features": features})
    looked = []
    worst_case = OptimalUnaryEncoding.worst_case
    monkeypatch.setattr(OptimalUnaryEncoding, "worst_case", lambda one: looked.append(one) or worst_case(one))
    assert verify(campaign).holds
    assert len(campaign.questions) == 101
    assert len(looked) == len(set(looked)) == 2


def test_what_has_too_many_outputs_is_not_enumerated():
    assert facts_of(DISCRETE["oue"].make(8, Fraction(1))).law_size == 8 * 2**8
    assert facts_of(DISCRETE["she"].make(2, Fraction(1))).law_size == 0
    assert facts_of(DISCRETE["oue"].make(65536, Fraction(1))).law_size == 0


def test_large_domains_take_the_closed_form():
    assert worst_case(DISCRETE["oue"].make(1024, Fraction(1)))[1] == CLOSED_FORM
    assert worst_case(DISCRETE["ss"].make(1024, Fraction(1)))[1] == CLOSED_FORM


def test_a_ratio_is_within_epsilon_up_to_the_last_unit_and_not_beyond():
    low, high = exp_bounds(Fraction(1))
    assert WorstCase(low).stays_within(Fraction(1))
    assert not WorstCase(high).stays_within(Fraction(1))
    assert WorstCase(Fraction(1), Fraction(1)).stays_within(Fraction(1))
    assert not WorstCase(Fraction(1), 1 + Fraction(1, 10**60)).stays_within(Fraction(1))
    assert WorstCase(Fraction(2) ** 100).stays_within(Fraction(70))
    assert not WorstCase(Fraction(2) ** 102).stays_within(Fraction(70))


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0])
def test_one_unit_of_probability_more_breaks_the_promise(epsilon):
    promised = exact_epsilon(epsilon)
    direct = DirectEncoding.make(8, promised)
    assert not worst_case(DirectEncoding(8, direct.keep + 1))[0].stays_within(promised)
    subset = SubsetSelection.make(8, promised)
    assert not worst_case(SubsetSelection(8, subset.subset_size, subset.include + 1))[0].stays_within(promised)
    vector = MOMENTS["laplace"].make(3, promised)
    assert not worst_case(type(vector)(3, vector.grid, vector.scaled - 1))[0].stays_within(promised)


def test_a_mechanism_that_excludes_an_output_has_no_finite_ratio():
    for prove in (worst_case, closed_form):
        with pytest.raises(ZeroDivisionError):
            prove(DirectEncoding(4, ONE))


@pytest.mark.parametrize("privacy", [{}, {"answers": "all"}, {"discrete": "the"}, {"continuous": "laplace"}])
def test_a_compiled_campaign_holds_and_its_total_is_the_one_that_parsing_finds(privacy):
    campaign = Campaign.compile(draft(**privacy))
    verification = verify(campaign)
    assert verification.holds
    assert len(verification.questions) == len(campaign.questions)
    assert abs(verification.loss - campaign.loss) < Fraction(1, 10**40)


def test_the_gap_of_a_threshold_is_explained_and_nothing_else_needs_explaining():
    checks = verify(Campaign.compile(draft(discrete="the", continuous="laplace"))).questions
    told = {check.question.mechanism.name: check.note for check in checks}
    assert "threshold" in told["the"]
    assert told["laplace"] is None


def test_a_question_that_promises_less_than_it_loses_does_not_hold():
    (question, *_) = Campaign.compile(draft()).questions
    broken = QuestionCheck(question, WorstCase(Fraction(3)), CLOSED_FORM)
    assert not broken.holds
    assert broken.gap < 0


def test_the_json_form_is_plain_data():
    told = verify_thoroughly(Campaign.compile(draft(discrete="the"))).to_json()
    assert json.loads(json.dumps(told)) == told
    assert told["holds"]
    assert told["realised_epsilon"] <= told["epsilon"]
    assert {row["method"] for row in told["questions"]} == {ENUMERATION, CLOSED_FORM}
