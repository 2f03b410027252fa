"""A report in words says what its payload says, no more."""

from __future__ import annotations

import pytest

from protocols import Campaign
from protocols.document.questions import MOMENT
from protocols.mechanisms import Moment
from simulations import SeededCoins
from simulations.commands.demo import cell_name, read_report


def question_about(campaign: Campaign, name: str | None):
    return next(question for question in campaign.questions if question.feature == name)


def test_an_index_is_named_with_its_class_and_its_chance_of_being_true_and_a_set_as_a_set(make_everything):
    campaign = make_everything(discrete="de", epsilon=2.0)
    colour = question_about(campaign, "colour")
    said = read_report(campaign, colour, bytes([3]))
    assert said == f"colour is green and outcome is no (true with probability {float(colour.mechanism.p):.2f})"
    age = question_about(campaign, "age")
    assert read_report(campaign, age, bytes([2])).startswith("age is from 25 to 50 and outcome is yes")
    assert read_report(campaign, question_about(campaign, None), bytes([1])).startswith("outcome is no (true")
    campaign = make_everything(discrete="oue")
    said = read_report(campaign, question_about(campaign, "colour"), bytes([0b101]))
    marked = "colour is red and outcome is yes; colour is green and outcome is yes"
    assert said.startswith(f"2 of 6 answers are marked: {marked}")
    assert said.endswith("(the true one is among them with probability 0.50)")


@pytest.mark.parametrize("mechanism", ["laplace", "onebit", "sign"])
def test_every_continuous_question_can_be_read(mechanism, make_everything):
    campaign = make_everything(continuous=mechanism)
    question = question_about(campaign, "hours")
    item = Moment(1, 0) if question.encoding == MOMENT else 3
    said = read_report(campaign, question, question.perturb(item, SeededCoins(1)))
    assert "hours" in said
    if question.encoding == MOMENT:
        with pytest.raises(ValueError, match="noisy numbers"):
            cell_name(campaign, question, 0)
    else:
        assert cell_name(campaign, question, 3) == "hours (value) leans to the upper end and outcome is no"
