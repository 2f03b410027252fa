"""Every leak is found, as it should be, or is a miss that is told; who keeps the promise passes, however odd.

Every run takes a few of the clients, each with as many trials as find it whatever the seed; all of them are taken at
length, with the command's default. The audit is wrong about a sound client with probability at most 0.1 %, and all
seeds here are fixed. Of a series whole lives are compared, and whoever makes something of time is found.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from pathlib import Path

import leaking_answers
import leaking_around
import numpy as np
import pytest
import series_clients
from audited import Client, Device, cases, planted_in
from audited_campaigns import SERIES, campaign, question, scores
from leaking_answers import cells_of, index_bytes, packed, sample, true_cells, with_epsilon

from ldp_aggregator.audit import Audit, audit
from ldp_aggregator.audit.asking.black_box import Person, command_client
from ldp_aggregator.audit.asking.people import Lives
from ldp_aggregator.audit.verdict import ID_UNEVEN, IMPOSSIBLE, LOSS
from ldp_protocols import encode_upload

WINDOWS = 4
ONE = 2**64


SOUND = {}
"""Clients that look odd and keep the promise: an auditor that reports one of them is wrong. Each says what is odd and
why it is sound. The code is that of a rule which a client breaks without telling anything.
"""

sound, _ = planted_in(SOUND)

DE, ONE_OF, ALL = campaign(4), campaign(4, 2, label=1), campaign(4, 2, label=1, answers="all")
LAPLACE = question("laplace", 2, 1.0)


@sound(None, ONE_OF, "reports")
def honest(device):
    """The client of this distribution."""
    return device.perturbed()


@sound(None, ONE_OF, "report_id")
def random_ids(device, asked):
    """Ids are sixteen random bytes, and no HMAC of a secret: they do not depend on the record."""
    return device.entropy(16)


@sound(ID_UNEVEN, ONE_OF, "report_id")
def uuid_4_ids(device, asked):
    """Six bits of every id never change. The others are random."""
    given = bytearray(device.entropy(16))
    given[6], given[8] = given[6] & 0x0F | 0x40, given[8] & 0x3F | 0x80
    return bytes(given)


@sound(ID_UNEVEN, ONE_OF, "report_id")
def counting_ids(device, asked):
    """Ids are a random number of the process and a counter, which steps by one whatever the record is. They link the
    devices of a process, which is rude.
    """
    memory = device.process.memory
    memory["counter"] = memory.get("counter", 0) + 1
    return memory.setdefault("prefix", device.entropy(8)) + memory["counter"].to_bytes(8, "big")


@sound(ID_UNEVEN, ONE_OF, "report_id")
def time_ordered_ids(device, asked):
    """Ids begin with the time in milliseconds, as UUIDs of version 7 do. They tell when, not what."""
    return int(device.process.now.timestamp() * 1000).to_bytes(6, "big") + device.entropy(10)


@sound(None, DE, "perturb")
def truth_or_any_value(device, asked, item):
    """The truth, or else any of the d values, the true one included: the truth has the share p - q."""
    kept = device.coins.bernoulli(math.floor((asked.mechanism.p - asked.mechanism.q) * ONE))
    return index_bytes(item if kept else device.coins.below(asked.domain_size), asked)


@sound(None, DE, "reply")
def any_answer_for_missing(device, asked):
    """A missing value is answered by any of the d answers, evenly: p d <= e and 1 / (q d) <= e."""
    if device.held(asked.feature) is not None:
        return Device.reply(device, asked)
    return index_bytes(device.coins.below(asked.domain_size), asked)


@sound(None, DE, "perturb")
def half_the_budget(device, asked, item):
    """Half of epsilon is used, "to be on the safe side"."""
    return with_epsilon(device, asked, item, Fraction(asked.epsilon) / 2)


@sound(None, LAPLACE, "perturb")
def narrower_clamp(device, asked, item):
    """Noisy cells are cut at two scales, below the bound of the document: at the same place for all records."""
    longest = math.ceil(2 * asked.mechanism.scale)
    return packed(asked, [max(-longest, min(longest, cell)) for cell in cells_of(asked.perturb(item, device.coins))])


@sound(None, LAPLACE, "perturb")
def sum_of_two_noises(device, asked, item):
    """Noise is drawn twice and added up, and the cells last to first: the second draw is post-processing."""
    cells = [cell + sample(device, asked) for cell in true_cells(device, asked, item)[::-1]]
    return packed(asked, [cell + sample(device, asked, Fraction(1, 4)) for cell in cells][::-1])


@sound(None, ONE_OF, "questions")
def deals_questions(device):
    """Questions are dealt from a shuffled deck that holds each by its weight: the deck knows no record."""
    deck = device.process.memory.setdefault("deck", [])
    if not deck:
        left = [asked for asked in device.campaign.questions for _ in range(asked.weight)]
        while left:
            deck.append(left.pop(device.coins.below(len(left))))
    return [deck.pop()]


@sound(None, ALL, "send")
def one_by_one_shuffled(device):
    """Every answer is an upload of its own, in an order drawn by lot."""
    left, sent = list(device.reports()), []
    while left:
        sent.append(encode_upload([left.pop(device.coins.below(len(left)))], device.campaign))
    return tuple(sent)


@sound(None, ONE_OF, "send", name="everything-twice", least=2, lots=1)
@sound(None, ONE_OF, "send", name="some-retries-by-lot", least=1, lots=3)
def several_times(device, least, lots):
    """Every upload goes out twice, the same bytes: so it does for every record. Or one to three times, by lot, as on a
    bad network: the lot knows no record.
    """
    return Device.send(device) * (least + device.coins.below(lots))


@sound(None, ONE_OF, "send")
def silent_by_lot(device):
    """One device in ten never gets to send: it is drawn before its record is read."""
    return Device.send(device) if device.coins.below(10) else ()


LEAKING = leaking_answers.LEAKING | leaking_around.LEAKING
"""Those without a code are what no black box catches; docs/audit.md has the list."""

TIGHT = {
    **{name: question(name, 4 if name == "de" else 8, 1.0) for name in ("de", "sue", "oue", "the", "ss")},
    **{name: question(name, 2, 1.0) for name in ("she", "laplace", "onebit", "sign")},
    "value and square of a number": campaign(numbers=1, continuous="sign"),
    "both questions of an evaluation": scores(),
}
"""Campaigns that ask little, so that most of their loss is found."""

FEW = (
    "rare-value-in-the-clear",
    "wrong-answers-in-the-clear",
    "padding-by-class",
    "true-bit-not-cleared",
    "id-from-the-record",
    "ids-count-by-class",
    "class-in-the-version",
    "long-header-by-class",
    "empty-upload-by-class",
    "coins-from-a-constant-seed",
    "noise-from-the-id",
    "study-answered-twice",
    "stored-for-one-class",
)
FEW_SOUND = ("uuid-4-ids", "truth-or-any-value", "sum-of-two-noises")


def audited(document: str, client: Client, times: int) -> Audit:
    return audit(document, client, times, rng=np.random.default_rng(1))


def codes(result: Audit) -> set[str]:
    """What is impossible for somebody is a loss above the claim too: chance says which of the two is told."""
    found = {finding.code for finding in result.findings}
    return found | {LOSS} if IMPOSSIBLE in found else found


@pytest.mark.parametrize(("name", "trials"), cases(LEAKING, {name: LEAKING[name].trials for name in FEW}))
def test_a_leak_is_found_or_is_a_miss_that_is_told(name, trials):
    leak = LEAKING[name]
    found = codes(audited(leak.document, leak.client(), max(leak.trials, trials)))
    assert leak.code in found if leak.code else not found


@pytest.mark.parametrize(("name", "trials"), cases(SOUND, dict.fromkeys(FEW_SOUND, 100), at_length=1000))
def test_a_client_that_only_looks_odd_passes(name, trials):
    """Wrong with probability 0.001 for each."""
    client = SOUND[name]
    found = codes(audited(client.document, client.client(), trials))
    # A counter also tells the place in the list, which the audit's own order makes the person's.
    # What then comes from one person alone is told as impossible or as a loss, by chance.
    place = {"tells-beside-the-answer", "tells-of-others-before", LOSS, IMPOSSIBLE}
    assert found - (place if name == "counting-ids" else set()) == ({client.code} if client.code else set())


@pytest.mark.parametrize(("name", "trials"), cases(TIGHT, {"de": 800}))
def test_the_client_of_this_distribution_passes_and_most_of_its_own_loss_is_found(name, trials):
    """All but ``the`` have an event of the whole of exp(epsilon)."""
    result = audited(TIGHT[name], Client(), trials)
    assert result.findings == ()
    assert 0.85 * result.stated <= result.lower_bound <= result.stated


FEW_OF_TIME = {
    series_clients.two_answers: 20,
    series_clients.answer_kept_for_a_better_window: 50,
    series_clients.again_where_the_class_is_the_second: 100,
}


@pytest.mark.parametrize(("leak", "trials"), cases(series_clients.LEAKING, FEW_OF_TIME, 2_000))
def test_whoever_makes_something_of_time_is_found(leak, trials):
    result = audited(SERIES, series_clients.SeriesClient(leak), trials)
    assert {finding.code for finding in result.findings} & series_clients.LEAKING[leak], result.findings


@pytest.mark.parametrize("live", [series_clients.sound, series_clients.again_by_lot])
@pytest.mark.parametrize("trials", [100, pytest.param(5_000, marks=pytest.mark.long)])
def test_the_sound_client_passes_and_most_of_its_loss_is_found(live, trials):
    result = audited(SERIES, series_clients.SeriesClient(live), trials)
    assert result.findings == ()
    assert 0.4 < result.lower_bound <= 1


OWN = [sys.executable, "-m", "ldp_client.lines"]


@pytest.mark.long
def test_the_distributions_own_client_passes():
    assert audited(SERIES, command_client(OWN), 1_000).findings == ()


def test_the_distributions_own_client_sends_once_in_a_life_in_the_window_that_its_report_names():
    series_clients.answers_once_in_a_life(OWN)


def test_a_life_says_when_a_device_sent_and_how_often_it_repeated_itself():
    """In the first window nothing, in the second an upload, in the third that one twice, in the last nothing."""
    said = [(), (b"upload",), (b"upload", b"upload"), ()]

    def client(document, people, storage=None):
        return [answer for answer in said for _ in range(len(people) // WINDOWS)]

    lives = Lives.of(SERIES)
    person = Person({"f0": "1"}, "c0")
    assert lives.client(client)(lives.document, [person]) == [(b"", b"upload", b"", b"", bytes([0, 0, 2, 0]))]
    assert lives.client(client)(lives.document, [person], Path("a storage")) == [(b"upload",)]


def test_people_change_between_windows_at_every_place():
    lives = Lives.of(SERIES)
    people = tuple(Person({"f0": str(number)}, "c0") for number in range(3))
    asked = lives.people(people)
    assert asked[:3] == people
    changes = {
        tuple(life.in_window(window).record["f0"] != life.in_window(window + 1).record["f0"] for window in range(3))
        for life in asked
    }
    assert changes == {(False,) * 3, (True, False, False), (False, True, False), (False, False, True), (True,) * 3}
    assert len(lives.value["questions"]) == WINDOWS
    assert [question["window"] for question in lives.value["questions"]] == list(range(WINDOWS))
