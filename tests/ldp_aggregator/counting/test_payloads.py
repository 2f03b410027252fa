"""Payloads are checked and counted as the mechanisms say, payload by payload, whichever way they come."""

import random
from fractions import Fraction
from functools import partial

import drafts
import numpy as np
import pytest
from credit_draft import attempt

from ldp_aggregator.counting import payloads as counting
from ldp_aggregator.counting.payloads import (
    CampaignKey,
    cells,
    count,
    digests,
    lay_out,
    layout_of,
    payload_rows,
    refusals,
)
from ldp_protocols import Campaign, DocumentError, Question
from ldp_protocols.document.questions import INDEX, MOMENT, PAIR, VALUE
from ldp_protocols.drafting import make_discrete
from ldp_protocols.mechanisms import DISCRETE, MOMENTS, Moment, NoisyVector, OneBit, PureMechanism
from ldp_simulations.fidelities import SeededCoins


def mix(value):
    """The finaliser of splitmix64, in whole numbers."""
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ value >> 27) * 0x94D049BB133111EB % 2**64
    return value ^ value >> 31


def slow_digest(question, payload):
    words = [int.from_bytes(payload[start : start + 8], "little") for start in range(0, len(payload), 8)]
    total = sum(mix((word + 0x9E3779B97F4A7C15 * place) % 2**64) for place, word in enumerate(words, start=1))
    return mix((total + question * 0x94D049BB133111EB) % 2**64)


def test_the_digest_is_the_same_on_every_machine_and_in_every_version():
    """It is stored: a change would make every retry across an update a conflict."""
    assert f"{int(digests(0, np.zeros((1, 1), np.uint8))[0]):016x}" == "48218226ff3cd4bf"
    for width in (1, 7, 8, 9, 13, 100):
        rows = np.random.default_rng(width).integers(0, 256, (50, width), dtype=np.uint8)
        assert digests(5, rows).tolist() == [slow_digest(5, row.tobytes()) for row in rows]


DOMAINS = (2, 7, 8, 9, 130, 300)


def question_of(name, domain_size, epsilon=Fraction(1)):
    if name in DISCRETE:
        return Question(0, PAIR, "x", None, 1, INDEX, make_discrete(name, domain_size, epsilon), float(epsilon), 1)
    made = MOMENTS[name].make(domain_size, epsilon)
    return Question(0, VALUE, "x", None, 1, MOMENT, made, float(epsilon), 1)


def scalar_count(question, payloads):
    """The tally vector, one payload at a time."""
    total = [0] * cells(question)
    for payload in payloads:
        mechanism = question.mechanism
        if isinstance(mechanism, PureMechanism):
            for index in mechanism.support(payload):
                total[index] += 1
        elif isinstance(mechanism, OneBit):
            total[2 * int.from_bytes(payload[:-1], "little") + payload[-1]] += 1
        elif isinstance(mechanism, NoisyVector):
            for index in range(question.domain_size):
                total[index] += int.from_bytes(payload[4 * index : 4 * index + 4], "little", signed=True)
    return total


@pytest.mark.parametrize("domain_size", DOMAINS)
@pytest.mark.parametrize("name", [*DISCRETE, *MOMENTS])
def test_counting_rows_is_counting_one_payload_after_another(name, domain_size):
    question, coins = question_of(name, domain_size), SeededCoins(domain_size)
    items = [index if name in DISCRETE else Moment(index, index << 40) for index in range(min(domain_size, 40))]
    payloads = [question.perturb(item, coins) for item in items]
    rows = payload_rows(question, b"".join(payloads))
    assert refusals(question, rows) == refusals(question, rows[:0]) == {}
    assert count(question, rows).tolist() == scalar_count(question, payloads)
    assert not count(question, rows[:0]).any()


@pytest.mark.parametrize("rows_of_bits", [254, 255, 256, 255 * 513 + 3])
def test_bits_are_added_exactly_beyond_what_a_byte_holds(rows_of_bits):
    question = question_of("oue", 9)
    rows = np.tile(np.array([[0b10000001, 0b1]], dtype=np.uint8), (rows_of_bits, 1))
    assert count(question, rows).tolist() == [rows_of_bits, 0, 0, 0, 0, 0, 0, rows_of_bits, rows_of_bits]


@pytest.mark.parametrize("domain_size", DOMAINS)
@pytest.mark.parametrize("name", [*DISCRETE, *MOMENTS])
def test_random_bytes_are_refused_exactly_where_the_mechanism_refuses_them(name, domain_size):
    question = question_of(name, domain_size, Fraction(1, 4))
    rng = np.random.default_rng(domain_size)
    width = question.mechanism.width
    rows = rng.integers(0, 256, size=(400, width), dtype=np.uint8)
    if name == "onebit":
        rows[:, -1] %= 3
    if isinstance(question.mechanism, NoisyVector):  # Cells around the bound, on both sides of it.
        reach = question.mechanism.bound
        shape = (len(rows), domain_size)
        near = rng.choice([-reach - 1, -reach, 0, reach, reach + 1], p=[0.01, 0.05, 0.88, 0.05, 0.01], size=shape)
        rows = near.astype("<i4").view(np.uint8)
    refused = refusals(question, rows)
    found = [attempt(partial(question.mechanism.check, row.tobytes()), DocumentError)[1] for row in rows]
    assert refused == {position: error.code for position, error in enumerate(found) if error}


KINDS = ("de", "oue", "ss", "she", "sue", "the")


def mixed_campaign(discrete, continuous, sizes=(2, 3, 4, 7, 9, 40, 130, 300)):
    """Questions of very different widths."""
    features = [drafts.text(f"f{n}", *map(str, range(size))) for n, size in enumerate(sizes)]
    features += [drafts.number("c0"), drafts.number("c1")]
    label = {"name": "label", "classes": ["a", "b", "c"]}
    privacy = {"epsilon": 1.0, "discrete": discrete, "continuous": continuous}
    return Campaign.compile(drafts.draft(*features, label=label, privacy=privacy))


def some_payloads(campaign, dice, most):
    """Questions in order, and for each report bytes that are often sound and often not."""
    questions, payloads = [], []
    for number, question in enumerate(campaign.questions):
        for _ in range(dice.randrange(most + 1)):
            width = question.mechanism.width
            payload = bytearray(dice.randbytes(width) if dice.random() < 0.5 else bytes(width))
            if dice.random() < 0.5:
                payload[0] = dice.randrange(3)
                payload[-1] = dice.randrange(2)
            questions.append(number)
            payloads.append(bytes(payload))
    return questions, payloads


def one_by_one(campaign, questions, payloads, counted):
    """Codes, digests and sums by the functions for one question."""
    codes, checks, sums = {}, np.zeros(len(questions), np.uint64), {}
    for number in sorted(set(questions)):
        question = campaign.questions[number]
        places = [place for place, asked in enumerate(questions) if asked == number]
        rows = payload_rows(question, b"".join(payloads[place] for place in places))
        codes |= {places[row]: code for row, code in refusals(question, rows).items()}
        checks[places] = digests(number, rows)
        kept = [row for row, place in enumerate(places) if counted[place]]
        if kept:
            sums[number] = (len(kept), count(question, rows[kept]).tolist())
    return codes, checks.tolist(), sums


@pytest.mark.parametrize("discrete", KINDS)
@pytest.mark.parametrize("continuous", ["laplace", "onebit", "sign"])
@pytest.mark.parametrize("few", [0, 64])
def test_both_ways_of_counting_agree(discrete, continuous, few, monkeypatch):
    monkeypatch.setattr(counting, "FEW", few)
    campaign = mixed_campaign(discrete, continuous)
    dice = random.Random(f"{discrete} {continuous}")
    for most in (1, 3, 6):
        questions, payloads = some_payloads(campaign, dice, most)
        laid_out = lay_out(campaign, np.array(questions, dtype=np.int64), b"".join(payloads))
        codes, checks, sums = {}, np.zeros(len(questions), np.uint64), {}
        for sheet in laid_out:
            codes |= sheet.refusals()
            checks[sheet.places] = sheet.digests()
        counted = np.array([place not in codes and dice.random() < 0.9 for place in range(len(questions))], dtype=bool)
        for sheet in laid_out:
            sums |= {q: (n, counts.tolist()) for q, (n, counts) in sheet.sums(counted).items()}
        assert (codes, checks.tolist(), sums) == one_by_one(campaign, questions, payloads, counted)
        assert (len(laid_out) < len(set(questions))) == (few > 0)


def test_a_series_and_one_window_of_it_are_laid_out_each_on_its_own():
    windows = {"from": "2026-01-01T00:00:00Z", "length": "P1D", "count": 3}
    series = Campaign.compile(drafts.draft(drafts.text("u", "1", "2"), windows=windows))
    assert series.one_window.id == series.id
    sizes = [len(layout_of(CampaignKey(one)).kind) for one in (series, series.one_window, series)]
    assert sizes == [3 * sizes[1], sizes[1], 3 * sizes[1]]


def test_a_noisy_number_is_refused_beyond_the_bound_on_either_side_to_the_least_that_four_bytes_hold():
    question = question_of("she", 4)
    bound = question.mechanism.bound
    told = {bound: False, bound + 1: True, -bound: False, -bound - 1: True, 2**31 - 1: True, -(2**31): True}
    rows = np.array([[0, 0, number, 0] for number in told], dtype="<i4").view(np.uint8)
    refused = [place for place, wrong in enumerate(told.values()) if wrong]
    assert refusals(question, rows) == dict.fromkeys(refused, "value-out-of-range")
