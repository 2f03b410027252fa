"""A preview tells what is true of a record and how likely each answer is, and changes nothing."""

import math
from collections import Counter

import pytest
from drafts import draft, number, text
from exact_coins import SeededCoins
from records import RECORD

from ldp_client import RefusedError
from ldp_client.answering import item_of
from ldp_client.preview import preview_of
from ldp_client.words import cell_of, end_of
from ldp_protocols import Campaign

FEATURES = text("colour", "red", "green"), number("age", 0, 100, bins=4), number("hours", 0, 10)
TAKEN = {"colour": "green", "age": 30, "hours": 2.5}
DRAWS = 4000
SIGMAS = 6
"""Of some 200 frequencies one lies farther off by chance in less than one of a million runs."""


def campaign(**privacy):
    return Campaign.compile(draft(*FEATURES, privacy={"epsilon": 2.0, **privacy}))


def named(of, question, payload):
    if question.mechanism.name == "onebit":
        return [end_of(of, question, payload[0], payload[1])]
    return [cell_of(of, question, cell) for cell in question.mechanism.support(payload)]


@pytest.mark.parametrize(
    "mechanisms", [("de", "onebit"), ("ss", "sign"), ("oue", "onebit"), ("sue", "sign"), ("the", "sign")]
)
def test_answers_name_what_a_preview_says_as_often_as_it_says(mechanisms):
    of = campaign(discrete=mechanisms[0], continuous=mechanisms[1])
    told = preview_of(of, TAKEN, "b")
    assert told.problems == ()
    coins = SeededCoins(7)
    for question, one in zip(of.questions, told.questions, strict=True):
        seen = Counter()
        for _ in range(DRAWS):
            seen.update(named(of, question, question.perturb(item_of(of, question, TAKEN, 1, coins), coins)))
        assert len(one.said) == len({words for words, _ in one.said}) > 1
        for words, chance in one.said:
            assert abs(seen[words] / DRAWS - chance) <= SIGMAS * math.sqrt(chance * (1 - chance) / DRAWS), words


def test_one_of_many_questions_is_asked_or_one_of_each_group():
    one, of_each = (preview_of(campaign(answers=answers), TAKEN, "a").questions for answers in ("one", "all"))
    assert sum(question.chance for question in one) == pytest.approx(1)
    assert [question.chance for question in of_each] == [1, 1, 1, 0.5, 0.5]
    assert [question.truth for question in one] == ["a", "green, a", "[25, 50), a", "2.5, a", "2.5 squared, a"]


def test_noisy_numbers_are_said_by_what_is_added_to_them():
    said = [one.said for one in preview_of(campaign(discrete="she", continuous="sign"), TAKEN, "b").questions]
    assert said[1] == (("1 at green, b; 0 at 3 others; noise of scale 1 is added to each", 1.0),)


@pytest.mark.parametrize(
    ("record", "label", "truths"),
    [
        ({"hours": 3}, "a", ["a", None, None, "3, a", "3 squared, a"]),
        (TAKEN, None, [None] * 5),
        (TAKEN, "neither", [None] * 5),
        ({}, "a", ["a", None, None, None, None]),
        ([], "a", [None] * 5),
    ],
)
def test_where_there_is_no_truth_nothing_is_said_of_it(record, label, truths):
    told = preview_of(campaign(), record, label)
    assert [one.truth for one in told.questions] == truths
    assert [bool(one.said) for one in told.questions] == [truth is not None for truth in truths]


def test_a_record_that_raises_whatever_is_asked_is_previewed_too():
    class Broken(dict):
        def __getitem__(self, name):
            raise RuntimeError(name)

        __contains__ = __iter__ = __getitem__

    told = preview_of(campaign(), Broken(), "a")
    assert [one.truth for one in told.questions] == ["a", None, None, None, None]
    assert told.problems


def test_a_preview_prints_as_a_table_on_lines_of_its_own():
    lines = str(preview_of(campaign(discrete="de"), {**TAKEN, "extra\x1b": 1}, "b")).splitlines()
    assert lines[0].startswith("! extra\\u001b: is no feature of the campaign")
    assert lines[1].startswith("y, asked with probability 0.")
    assert lines[1].endswith(": what is true is b")
    assert lines[2] == "  0.881  b"


def test_it_needs_the_document_at_hand_and_stores_and_draws_nothing(join, campaign, perturbations, tmp_path):
    _, part = join(storage=tmp_path / "device.db", granted=False)
    for call in (lambda: part.preview(RECORD, "yes"), part.explained):
        with pytest.raises(RefusedError, match="not at hand"):
            call()
    part.load(campaign.document)
    assert part.preview(RECORD, "yes").questions[0].asked == "missed_payment"
    assert part.explained().policy.parameters["url"].startswith("http://127.0.0.1:")
    assert (perturbations, list(tmp_path.iterdir())) == ([], [])
