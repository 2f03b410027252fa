"""A device says in words what it sent."""

import pytest
from drafts import draft, number, text
from exact_coins import SeededCoins

from ldp_client.delivery.rights import said_by
from ldp_protocols import Campaign
from ldp_protocols.document.questions import MOMENT
from ldp_protocols.mechanisms import Moment


def asked(name, **privacy):
    """A campaign, and its first question about a feature, or about the label alone."""
    features = text("colour", "red", "green"), number("age", 0, 100, bins=4, missing=True), number("hours", 0, 10)
    campaign = Campaign.compile(draft(*features, privacy={"epsilon": 2.0, **privacy}))
    return campaign, next(question for question in campaign.questions if question.feature == name)


@pytest.mark.parametrize(
    ("name", "cell", "words"),
    [("colour", 3, "green, b"), ("age", 2, "[25, 50), a"), ("age", 9, "missing, b"), (None, 1, "b")],
)
def test_an_index_is_named_with_its_class_and_its_chance_of_being_true(name, cell, words):
    campaign, question = asked(name, discrete="de")
    chance = f"{float(question.mechanism.p):.2f}"
    assert said_by(campaign, question, bytes([cell])) == f"{words} (true with probability {chance})"


def test_a_set_is_named_as_a_set_also_an_empty_one():
    campaign, question = asked("colour", discrete="oue")
    told = "red, a; green, a (the true one is among them with probability 0.50)"
    assert said_by(campaign, question, bytes([0b101])) == f"2 of 4 answers are marked: {told}"
    assert said_by(campaign, question, b"\0").startswith("0 of 4 answers are marked (the true one")


@pytest.mark.parametrize(("mechanism", "told"), [("laplace", "numbers"), ("onebit", "numbers"), ("sign", " end, ")])
def test_an_answer_about_a_number_is_said_as_its_mechanism_tells_it(mechanism, told):
    campaign, question = asked("hours", continuous=mechanism)
    item = Moment(1, 0) if question.encoding == MOMENT else 3
    assert told in said_by(campaign, question, question.perturb(item, SeededCoins(1)))
