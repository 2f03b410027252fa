"""What people read: the claim of an answer, and a campaign's promise in its own numbers."""

from dataclasses import replace
from unittest.mock import ANY

import pytest
from crowds import crowd_draft
from drafts import draft, number, text
from exact_coins import SeededCoins

from ldp_client.words import explained, plain, said, written
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
    assert said(campaign, question, bytes([cell])) == f"{words} (true with probability {chance})"


def test_a_set_is_named_as_a_set_also_an_empty_one():
    campaign, question = asked("colour", discrete="oue")
    told = "red, a; green, a (the true one is among them with probability 0.50)"
    assert said(campaign, question, bytes([0b101])) == f"2 of 4 answers are marked: {told}"
    assert said(campaign, question, b"\0").startswith("0 of 4 answers are marked (the true one")


@pytest.mark.parametrize(("mechanism", "told"), [("laplace", "numbers"), ("onebit", " end, "), ("sign", " end, ")])
def test_an_answer_about_a_number_is_said_as_its_mechanism_tells_it(mechanism, told):
    campaign, question = asked("hours", continuous=mechanism)
    item = Moment(1, 0) if question.encoding == MOMENT else 3
    assert told in said(campaign, question, question.perturb(item, SeededCoins(1)))


@pytest.mark.parametrize(("epsilon", "others"), [(0.1, 90), (1.0, 36), (4.0, 1), (5.0, None)])
def test_a_person_is_told_how_many_others_would_say_the_same(epsilon, others):
    told = explained(Campaign.compile(draft(text("colour", "red", "green"), privacy={"epsilon": epsilon})), "https://a")
    promise, noise = told.sentences
    assert promise.parameters == {"answers": 1, "questions": 2, "label": "y", "epsilon": written(epsilon)}
    if others is None:
        assert (noise.key, noise.parameters) == ("bare", {"people": 100})
    else:
        assert (noise.key, noise.parameters) == ("hidden", {"people": 100, "others": others})
        assert f"at least {others} of as many" in str(told)


def test_a_policy_says_where_answers_go_and_by_whom_where_they_are_sealed():
    campaign = Campaign.compile(draft(text("colour", "red", "green")))
    open_way, sealed = (
        explained(campaign, "https://a").policy,
        explained(replace(campaign, gateway=ANY), "https://a").policy,
    )
    assert "sends that to https://a, which sees the network address" in str(open_way)
    assert (open_way.key, sealed.key) == ("policy", "policy-sealed")
    assert "sealed and by a relay" in str(sealed)


@pytest.mark.parametrize(
    ("epsilon", "text_"),
    [(1.1, "1.1"), (1 / 3, "0.3334"), (2, "2"), (0.99999999999, "1"), (5e-324, "0.0001"), (12345.00001, "12345.0001")],
)
def test_an_epsilon_is_written_as_people_write_it_and_never_below_what_it_is(epsilon, text_):
    assert written(epsilon) == text_


def test_a_servers_text_stays_on_its_line():
    assert plain('a "b"\n\u202e\U0001f600') == "a 'b'\\u000a\\u202e\U0001f600"


def test_a_crowd_is_explained_with_both_numbers_and_their_odds():
    told = explained(Campaign.compile(crowd_draft()), "https://a")
    assert str(told) == (
        "This device answers 1 of 2 questions about y, once, with noise, in a sealed envelope. Whoever opens envelopes "
        "does not know whose they are, and 20,000 come at once: at most 1 (odds 2.7 to 1) is learned about you. If the "
        "two companies broke their promise to keep apart, it would be at most 4 about that one answer (odds 55 to 1), "
        "and nothing about the others."
    )
    assert told.policy.key == "policy-crowd"
    assert "20,000 at a time, mixed: of what the server sees at most epsilon 1 (delta 1e-09) is about you" in str(
        told.policy
    )
