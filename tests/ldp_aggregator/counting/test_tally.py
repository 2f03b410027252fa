"""Tallies are exact, in any order, sharding and merge, and say what the mechanisms say payload by payload."""

import random
from fractions import Fraction
from functools import partial

import drafts
import numpy as np
import pytest
from cells import cell_campaign
from credit_draft import attempt

from ldp_aggregator import Tally
from ldp_aggregator.counting import tally
from ldp_aggregator.counting.tally import (
    cells,
    compactable,
    count,
    digests,
    encode_part,
    lay_out,
    part_of_tally,
    payload_rows,
    refusals,
    tally_of_parts,
)
from ldp_client.answering import perturb
from ldp_protocols import Campaign, DocumentError, Question, Report, encode_upload
from ldp_protocols.document.questions import INDEX, MOMENT, PAIR, VALUE
from ldp_protocols.drafting import make_discrete
from ldp_protocols.mechanisms import DISCRETE, MOMENTS, Moment, NoisyVector, OneBit, PureMechanism
from ldp_simulations.fidelities import SeededCoins


def test_parts_add_up_in_any_order_and_a_tally_survives_being_one():
    campaign = cell_campaign(4)
    parts = [encode_part({0: (n, np.arange(4) * n)}) for n in (1, 10, 100)]
    forwards, backwards = tally_of_parts(campaign, parts), tally_of_parts(campaign, reversed(parts))
    assert forwards == backwards
    assert (forwards.n.tolist(), forwards.counts[0].tolist()) == ([111], [0, 111, 222, 333])
    tally = Tally(campaign)
    tally.add(0, 2**40, np.array([2**62, -(2**62), 0, -1]))
    assert tally_of_parts(campaign, [part_of_tally(tally)]) == tally
    assert part_of_tally(Tally(campaign)) == b""


def test_a_part_is_as_large_as_what_it_adds():
    one = np.zeros(32_768, dtype=np.int64)
    one[20_000] = 1
    assert len(encode_part({0: (1, one)})) == 48
    assert len(encode_part({0: (1, np.ones(32_768, dtype=np.int64))})) == 32 + 32_768
    tally = tally_of_parts(cell_campaign(32_768), [encode_part({0: (1, one)})] * 3)
    assert tally.counts[0].tolist() == (3 * one).tolist()


@pytest.mark.parametrize("size", [4, 128, 254, 256, 258, 32_768])
def test_every_vector_survives_packing(size):
    rng, campaign = np.random.default_rng(size), cell_campaign(size)
    for share in (0.0, 0.01, 0.5, 1.0):
        for largest in (1, 127, 128, 2**15, 2**31, 2**62):
            counts = np.where(rng.random(size) < share, rng.integers(-largest - 1, largest, size), 0)
            counts[-1] = largest
            part = encode_part({0: (7, counts)})
            assert len(part) % 8 == 0
            tally = tally_of_parts(campaign, [part, b""])
            assert (tally.n.tolist(), tally.counts[0].tolist()) == ([7], counts.tolist())


@pytest.mark.parametrize(
    ("sizes", "chosen"),
    [
        ([48] * 65, 65),
        ([48] * 64 + [1000], 65),
        ([48] * 64 + [4000], 64),
        ([8, 5000, 5000], 3),
        ([48] * 20 + [900] * 45, 65),
        ([48] * 10 + [900] * 55, 10),
        ([], 0),
    ],
)
def test_small_parts_are_added_up_and_large_ones_left_until_the_small_are_as_large(sizes, chosen):
    assert compactable(sizes) == chosen


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (np.array([1, 1, 0, 0, 0, 1], "<i8").tobytes(), "question 1, which does not exist"),
        (np.array([-1, 1, 0, 0], "<i8").tobytes(), "question -1, which does not exist"),
        (np.array([0, 1, 1], "<i8").tobytes(), "ends within question 0"),
        (np.array([0, 1, 1, 0x11, 0], "<i8").tobytes(), "ends within question 0"),
        (np.array([0, 1, 5, 0x11, 0, 0], "<i8").tobytes(), "question 0 that makes no sense"),
        (np.array([0, 1, 1, 0x13, 0, 0], "<i8").tobytes(), "question 0 that makes no sense"),
        (np.array([0, 1, 1, 0x11, 4, 1], "<i8").tobytes(), "question 0 that makes no sense"),
        (np.array([0, 1, 2, 0x11, 0x0101, 0x0101], "<i8").tobytes(), "question 0 that makes no sense"),
        (np.array([0, 1, 3, 0x01, 0], "<i8").tobytes(), "3 counts for question 0 of 4"),
        (b"\0" * 7, "size"),
    ],
)
def test_bytes_that_are_no_part_are_refused(part, message):
    with pytest.raises(ValueError, match=message):
        tally_of_parts(cell_campaign(4), [part])


FEATURE = {"kind": "categorical", "missing": False, "values": ["a", "b", "c"]}


def test_shards_in_any_order_add_up_to_one_node(make_campaign):
    campaign, coins = make_campaign(FEATURE, discrete="oue"), SeededCoins(7)
    people = [({"x": "abc"[i % 3]}, f"c{i % 2}") for i in range(300)]
    sent = [encode_upload(perturb(campaign, record, label, coins=coins), campaign) for record, label in people]
    whole = Tally.of_uploads(campaign, sent)
    shuffled = random.Random(1).sample(sent, len(sent))
    shards = [Tally.of_uploads(campaign, shuffled[start::7]) for start in range(7)]
    total = Tally(campaign)
    for shard in reversed(shards):
        total.merge(shard)
    assert total == whole
    assert shards[0] + shards[1] == shards[1] + shards[0]
    assert whole.n.sum() == 300
    assert whole != Tally.of_uploads(campaign, sent[1:])
    assert whole != "a tally"


def test_a_report_no_device_can_have_sent_is_left_out(make_campaign):
    campaign = make_campaign(FEATURE, discrete="oue")
    good, bad = Report(1, b"a" * 16, bytes([0b111111])), Report(1, b"b" * 16, bytes([0b11000000]))
    tally = Tally.of_uploads(campaign, [encode_upload([good, bad, good], campaign)])
    assert tally.n.tolist() == [0, 2]
    assert tally.counts[1].tolist() == [2] * 6


def test_what_is_no_upload_or_does_not_fit_is_refused(make_campaign):
    one, other = make_campaign(FEATURE), make_campaign(FEATURE, epsilon=2)
    with pytest.raises(DocumentError):
        Tally.of_uploads(one, [b"\x00"])
    with pytest.raises(ValueError, match="do not add up"):
        Tally(one).merge(Tally(other))
    tally = Tally(one)
    with pytest.raises(ValueError, match="question 1 has 6 counts, not 2"):
        tally.add(1, 1, tally.counts[0])
    assert not tally.n.any()


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
    monkeypatch.setattr(tally, "FEW", few)
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
