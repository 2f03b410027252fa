"""Verification of documents by closed forms, as a device does it: every mechanism keeps its promise."""

from fractions import Fraction

import pytest
from drafts import draft, number, text

from ldp_protocols import Campaign
from ldp_protocols.mechanisms import OptimalUnaryEncoding, WorstCase
from ldp_protocols.verification import CLOSED_FORM, QuestionCheck, verify

FEATURES = (text("u", "1", "2", "missing"), number("v"), number("w", -3, 8, bins=40))


def compiled(*features, **privacy):
    label = {"name": "y", "classes": ["a", "b", "c"]}
    return Campaign.compile(draft(*(features or FEATURES), label=label, privacy={"epsilon": 1.0, **privacy}))


def test_a_mechanism_that_many_questions_share_is_looked_at_once(monkeypatch):
    """A hundred questions with one mechanism between them, as a campaign of a hundred alike features has."""
    campaign = compiled(*(text(f"f{i}", *"abcd") for i in range(100)), discrete="oue", epsilon=0.777)
    looked = []
    worst_case = OptimalUnaryEncoding.worst_case
    monkeypatch.setattr(OptimalUnaryEncoding, "worst_case", lambda one: looked.append(one) or worst_case(one))
    assert verify(campaign).holds
    assert len(campaign.questions) == 101
    assert len(looked) == len(set(looked)) == 2


@pytest.mark.parametrize("privacy", [{}, {"answers": "all"}, {"discrete": "the"}, {"continuous": "laplace"}])
def test_a_compiled_campaign_holds_and_its_total_is_the_one_that_parsing_finds(privacy):
    campaign = compiled(**privacy)
    verification = verify(campaign)
    assert verification.holds
    assert len(verification.questions) == len(campaign.questions)
    assert abs(verification.loss - campaign.loss) < Fraction(1, 10**40)


def test_the_gap_of_a_threshold_is_explained_and_nothing_else_needs_explaining():
    checks = verify(compiled(discrete="the", continuous="laplace")).questions
    told = {check.question.mechanism.name: check.note for check in checks}
    assert "threshold" in told["the"]
    assert told["laplace"] is None


def test_a_question_that_promises_less_than_it_loses_does_not_hold():
    (question, *_) = compiled().questions
    broken = QuestionCheck(question, WorstCase(Fraction(3)), CLOSED_FORM)
    assert not broken.holds
    assert broken.gap < 0
    assert QuestionCheck(question, WorstCase(Fraction(1), Fraction(1)), CLOSED_FORM).holds
    above = QuestionCheck(question, WorstCase(Fraction(1), 1 + Fraction(1, 10**30)), CLOSED_FORM)
    assert (float(above.worst.loss), above.holds) == (1.0, False), "by less than a double tells"


def test_losses_are_told_rounded_up():
    told = verify(compiled(epsilon=0.5), lambda _: (WorstCase(Fraction(1), Fraction(1, 3)), "by hand")).to_json()
    assert told["holds"]
    assert told["realised_epsilon"] == 0.33333333333333337
    assert {one["realised_epsilon"] for one in told["questions"]} == {0.33333333333333337}
    assert {one["method"] for one in told["questions"]} == {"by hand"}
