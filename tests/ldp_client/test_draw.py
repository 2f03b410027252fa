"""Which question a device is asked: a function of its secret alone, with the law that the weights say.

Chi-square thresholds are those of a false alarm in a million; the seeds are fixed.
"""

import hashlib
import hmac
import random
import struct
from collections import Counter
from fractions import Fraction
from itertools import product

import pytest
from drafts import draft, number, text
from exact_coins import SeededCoins, enumerate_outcomes
from records import Untouchable, Watched

from ldp_client import perturb
from ldp_client.draw import draw, draw_questions
from ldp_protocols import Campaign, LdpError, ScriptedCoins, encode_upload

DRAFT = draft(
    text("colour", "red", "green", weight=5),
    number("size", weight=3),
    label={"name": "y", "classes": ["a", "b"], "weight": 2},
    privacy={"epsilon": 1.0, "discrete": "de", "continuous": "onebit"},
)
RECORD = {"colour": "red", "size": 0.5}
CAMPAIGN = Campaign.compile(DRAFT)
WEIGHTS = (2, 5, 3, 3)
FEATURES = (None, "colour", "size", "size")
DEVICES = 5200
ONE_IN_A_MILLION = {3: 30.67, 15: 58.09}
"""Degrees of freedom to the chi-square that a right law exceeds once in a million times, rounded up."""

WEIGHTED = {index: weight / sum(WEIGHTS) for index, weight in enumerate(WEIGHTS)}


def all_of(count):
    """A campaign that answers one of two questions on each of ``count`` Gaussian features."""
    features = [number(f"g{i}") for i in range(count)]
    return Campaign.compile({**DRAFT, "features": features, "privacy": {"epsilon": 1.0, "answers": "all"}})


def secrets(count, seed=1):
    source = random.Random(seed)
    return [source.randbytes(32) for _ in range(count)]


def question_of(secret, campaign=CAMPAIGN):
    (question,) = draw_questions(campaign, secret)
    return question.index


def follow(counts, shares):
    """Whether counts are what the law of ``shares`` gives, by chi-square."""
    total = sum(counts.values())
    assert set(counts) <= set(shares)
    surprise = sum((counts[key] - total * share) ** 2 / (total * share) for key, share in shares.items())
    return surprise < ONE_IN_A_MILLION[len(shares) - 1]


def test_uniform_words_give_every_question_exactly_its_share_of_the_weights():
    drawn = enumerate_outcomes(lambda coins: draw(CAMPAIGN.questions, coins).index)
    assert drawn == {index: Fraction(weight, 13) for index, weight in enumerate(WEIGHTS)}


def test_a_campaign_that_asks_everything_draws_of_every_group_on_its_own():
    campaign = all_of(2)
    drawn = Counter(
        tuple(question.kind for question in draw_questions(campaign, secret)) for secret in secrets(DEVICES)
    )
    assert follow(drawn, {("label", *kinds): 1 / 4 for kinds in product(("value", "square"), repeat=2)})


def test_a_question_tells_nothing_about_the_one_of_another_campaign_and_the_report_id_of_the_same_secret():
    other = Campaign.compile({**DRAFT, "title": "another"})
    drawn = Counter((question_of(secret), question_of(secret, other)) for secret in secrets(DEVICES))
    assert follow(drawn, {(i, j): WEIGHTED[i] * WEIGHTED[j] for i in range(4) for j in range(4)})
    reports = [perturb(CAMPAIGN, RECORD, "a", secret=secret)[0] for secret in secrets(DEVICES)]
    drawn = Counter((report.question, report.id[0] >> 6) for report in reports)
    assert follow(drawn, {(i, top): WEIGHTED[i] / 4 for i in range(4) for top in range(4)})


def words_of(secret, campaign, slot):
    """The documented hash, written anew."""
    for position in range(100):
        message = b"question" + campaign.id.encode() + struct.pack("<II", slot, position)
        yield struct.unpack("<Q", hmac.new(secret, message, hashlib.sha256).digest()[:8])[0]


def test_the_question_is_the_documented_keyed_hash_and_words_beyond_the_weights_are_thrown_away():
    rejected = 0
    for secret in secrets(300):
        words = words_of(secret, CAMPAIGN, 0)
        ticket = next(words) & 15
        rejected += ticket >= 13
        while ticket >= 13:
            ticket = next(words) & 15
        assert question_of(secret) == [0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3][ticket]
    assert rejected > 20


def test_the_slot_of_a_group_is_part_of_the_hash():
    campaign = all_of(3)
    for secret in secrets(50):
        bits = [next(words_of(secret, campaign, slot)) & 1 for slot in (1, 2, 3)]
        drawn = [question.kind for question in draw_questions(campaign, secret)[1:]]
        assert drawn == [("value", "square")[bit] for bit in bits]


NASTY = [KeyError("gone"), PermissionError("sensor"), KeyboardInterrupt(), SystemExit(), 10**5000, object(), None]


@pytest.mark.parametrize("value", NASTY, ids=lambda value: type(value).__name__)
def test_a_record_that_cannot_be_read_never_gets_another_question_by_failing(value):
    """The app calls again after whatever is raised; a device that answers stops.

    Every one answers its own question, unless the person interrupts it, and the law stays that of the weights.
    """
    asked = Counter()
    for secret in secrets(DEVICES // 4, seed=2):
        record, questions = Watched(dict.fromkeys(RECORD, value)), set()
        for _ in range(3):
            try:
                questions.add(perturb(CAMPAIGN, record, "a", secret=secret)[0].question)
                break
            except BaseException:
                continue
        drawn = question_of(secret)
        interrupts = isinstance(value, BaseException) and not isinstance(value, Exception)
        assert questions == (set() if interrupts and FEATURES[drawn] else {drawn})
        assert set(record.read) <= {FEATURES[drawn]}
        asked[drawn] += 1
    assert follow(asked, WEIGHTED)


def test_a_record_that_fails_is_answered_as_one_that_holds_nothing():
    """The same words give the same bytes, whatever the failure."""
    for secret in secrets(40):
        records = ({}, *(Watched(dict.fromkeys(RECORD, error)) for error in (KeyError("gone"), RecursionError())))
        empty, *failing = (perturb(CAMPAIGN, one, "a", secret=secret, coins=SeededCoins(3)) for one in records)
        assert failing == [empty, empty]


@pytest.mark.parametrize("secret", [b"", b"x", bytes(31), bytes(33), bytes(64), "x" * 32, bytearray(32), 0, ()])
def test_a_secret_of_another_length_or_type_is_refused_before_the_record_is_read(secret):
    for attempt in (
        lambda: perturb(CAMPAIGN, Untouchable(), "a", secret=secret, coins=ScriptedCoins([])),
        lambda: draw_questions(CAMPAIGN, secret),
    ):
        with pytest.raises(LdpError, match="32 random bytes") as refused:
            attempt()
        assert refused.value.code == "invalid-secret"


def test_without_a_secret_every_call_is_a_new_device():
    uploads = Counter(perturb(CAMPAIGN, RECORD, "a")[0].question for _ in range(DEVICES // 4))
    # Not seeded: the false-alarm rate of the suite grows by one in a million.
    assert follow(uploads, WEIGHTED)
    assert len({encode_upload(perturb(CAMPAIGN, RECORD, "a"), CAMPAIGN) for _ in range(50)}) == 50
