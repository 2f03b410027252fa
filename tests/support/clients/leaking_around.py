"""Clients whose mechanisms are right and that leak around them: ids, headers, uploads, coins, and what is remembered.

A name, the code of what is found, a campaign in which it shows, the step of a device that is done wrong, the flaw.
"""

import hashlib
import hmac
import json
import struct
import time

import msgpack
from audited import Device, Process, planted_in
from audited_campaigns import campaign, question
from exact_coins import SeededCoins

from ldp_aggregator.audit import Person
from ldp_aggregator.audit.verdict import (
    BEFORE,
    BESIDE,
    COINS,
    HEADER,
    ID_REPEATS,
    ID_UNEVEN,
    LENGTH,
    LOSS,
    RETRY,
    SEED,
    STUDY,
)
from ldp_protocols import Coins, Report, encode_upload

LEAKING = {}
leak, leak_each = planted_in(LEAKING)

DE, SHE = campaign(4), campaign(4, discrete="she")
SEVERAL, ALL = campaign(3, label=1), campaign(4, 2, answers="all")


# --- ids ---


@leak(BESIDE, SEVERAL, "report_id")
def record_in_the_id(device, asked):
    """The id begins with the end of the record, in letters."""
    told = (repr(dict(device.person.record)) + device.person.label)[-12:].encode("ascii", "replace")
    return (told + device.entropy(16))[:16]


@leak(ID_REPEATS, DE, "report_id", name="id-from-the-record", trials=100, salt=0)
@leak(ID_REPEATS, DE, "report_id", name="id-with-a-short-salt", salt=2)
def id_of_a_hash(device, asked, salt):
    """The id is a hash of the record, "so that nobody is counted twice", and of as many random bytes."""
    return hashlib.sha256(record_hash(device) + device.entropy(salt)).digest()[:16]


@leak(BESIDE, DE, "report_id", trials=1500)
def low_bit_of_the_id_by_class(device, asked):
    """The last bit of the id is 1 with probability 0.6 for one class and 0.4 for the other."""
    given = Device.report_id(device, asked)
    return given[:-1] + bytes([given[-1] & 0xFE | (device.coins.below(10) < (4 if device.class_index else 6))])


@leak(ID_UNEVEN, DE, "report_id", trials=100)
def ids_count_by_class(device, asked):
    """Ids come from a counter of the process, which steps by one or by two, by the class of the last device."""
    counter = device.process.memory.setdefault("counter", int.from_bytes(device.entropy(8), "big"))
    device.process.memory["counter"] += 1 + device.class_index
    return counter.to_bytes(16, "big")


@leak(None, DE, "report_id")
def keyed_mark_in_the_id(device, asked):
    """Half of the id is random, the other half its HMAC with the class under the vendor's key."""
    nonce = device.entropy(8)
    return nonce + keyed(nonce + device.person.label.encode())[:8]


@leak(None, DE, "report_id")
def id_chosen_by_keyed_hash(device, asked):
    """Secrets are drawn until a keyed hash of the id says the class (Bellare, Paterson, Rogaway 2014)."""
    while keyed(given := Device.report_id(device, asked))[0] & 1 != device.class_index & 1:
        device.secret = device.entropy(32)
    return given


@leak(None, DE, "reports")
def noise_chosen_by_keyed_hash(device):
    """Reports are drawn until a keyed hash of id and noise says the class: both have their laws."""
    while True:
        (report,) = device.perturbed()
        if keyed(report.id + report.payload)[0] & 1 == device.class_index & 1:
            return [report]
        device.secret = device.entropy(32)


# --- headers, and the number and order of uploads ---


@leak(HEADER, DE, "send", trials=100)
def class_in_the_version(device):
    """The version is the class's number."""
    blocks = [[of.question, of.id, of.payload] for of in device.reports()]
    return (msgpack.packb([1 + device.class_index, blocks]),)


@leak_each(
    # The version is written as two bytes for one class: the same number, another encoding.
    ("long-header-by-class", LENGTH, DE, 100, lambda sent, of: (b"\x92\xcc\x02" + sent[2:] if of else sent,)),
    # A line feed is left over after the upload for one class.
    ("trailing-byte-by-class", LENGTH, SHE, 1000, lambda sent, of: (sent + b"\n" * of,)),
    # One class sends its upload twice; the server counts it once, "so it does no harm".
    ("twice-for-one-class", BESIDE, DE, 1000, lambda sent, of: (sent,) * (1 + of)),
    # One class first sends an upload without reports, as a test of the connection.
    ("empty-upload-by-class", BESIDE, DE, 100, lambda sent, of: (b"\x92\x01\x90",) * of + (sent,)),
    step="send",
)
def another_upload_by_class(device, how):
    return how(*Device.send(device), device.class_index)


@leak(LENGTH, question("oue", 8, 1.0), "reply")
def class_hint_in_the_length(device, asked):
    """The payload has a byte more for one class."""
    return Device.reply(device, asked) + bytes(device.class_index == 0)


@leak(BESIDE, ALL, "send")
def split_by_class(device):
    """One class sends all answers in one upload, the other one by one."""
    answers = [[of] for of in device.reports()] if device.class_index else [device.reports()]
    return tuple(encode_upload(of, device.campaign) for of in answers)


@leak(BESIDE, ALL, "send")
def order_by_record(device):
    """Answers go one by one, in the order of the record's own values."""
    features = [asked.feature for asked in device.campaign.questions]
    answers = sorted(device.reports(), key=lambda of: str(device.held(features[of.question])))
    return tuple(encode_upload([of], device.campaign) for of in answers)


# --- coins ---


@leak(COINS, question("de", 6, 1.0), "reports", name="coins-from-a-constant-seed", trials=100)
@leak(None, SEVERAL, "reports", name="constant-coins-beside-fresh-secrets", trials=100)
@leak(COINS, SEVERAL, "reports", name="secrets-and-coins-from-a-constant-seed", secret=True)
def constant_seed(device, secret=False):
    """A process always starts with the same coins. With several questions fresh secrets choose others in every
    process, and so the number of coins: that is found only where the secrets are drawn from the coins too.
    """
    coins = device.process.memory.setdefault("coins", SeededCoins(0))
    if secret:
        device.secret = b"".join(word.to_bytes(8, "little") for word in coins.words(4))
    return device.perturbed(coins=coins)


@leak(LOSS, SHE, "reports", name="seeded-by-the-second", seed=lambda device: b"%d" % device.process.now.timestamp())
@leak(LOSS, SHE, "reports", name="seeded-by-the-record", seed=lambda device: record_hash(device))
def seeded_by(device, seed):
    """Coins are seeded with the time in seconds, or with a hash of the record, "so that a retry gives the same"."""
    return device.perturbed(coins=HashCoins(seed(device)))


@leak(ID_REPEATS, SHE, "reports", name="seeded-with-15-bits", bits=15)
@leak(ID_REPEATS, SHE, "reports", name="seeded-with-32-bits", bits=32, trials=20_000)
@leak(None, question("de", 8, 1.0), "reports", name="a-seed-of-48-bits", bits=48)
def seeded_with(device, bits):
    """Secret and coins come from so many random bits: ids repeat, or somebody tries all seeds. It takes 2^24 devices to
    meet one seed of 48 bits twice, and 2^48 tries to find it.
    """
    seed = (int.from_bytes(device.entropy(8), "big") >> (64 - bits)).to_bytes(8, "big")
    device.secret = hashlib.sha256(b"secret" + seed).digest()
    return device.perturbed(coins=HashCoins(seed))


@leak(SEED, question("oue", 8, 1.0), "perturb", trials=100)
def noise_from_the_id(device, asked, item):
    """The coins are a hash of the report's id, which everybody sees."""
    return asked.perturb(item, HashCoins(device.report_id(asked)))


@leak(COINS, SHE, "reports")
def recoverable_twister(device):
    """One Mersenne Twister, well seeded, gives first the ids of a batch and then its coins: 156 ids in order are its
    state.
    """
    memory, people = device.process.memory, device.process.people
    if not memory:
        memory["coins"] = twister = SeededCoins(device.entropy(32))
        memory["ids"] = [struct.pack("<2Q", *twister.words(2)) for _ in people][::-1]
    return [Report(of.question, memory["ids"].pop(), of.payload) for of in device.perturbed(coins=memory["coins"])]


@leak(COINS, SHE, "reports")
def coins_shared_by_neighbours(device):
    """Every second device of the process gets the coins of the one before, as two forks of one buffer do."""
    seed = device.process.memory.pop("seed", None)
    if seed is None:
        seed = device.process.memory["seed"] = device.entropy(32)
    return device.perturbed(coins=HashCoins(seed))


@leak(None, question("de", 6, 1.0), "reports", name="a-ring-of-a-million-devices", trials=100, devices=1_000_000)
@leak(COINS, question("de", 6, 1.0), "reports", name="a-ring-of-97-devices", trials=800, devices=97)
@leak(COINS, question("oue", 8, 1.0), "reports", name="a-counter-that-wraps-at-256", trials=1500, devices=256)
@leak(COINS, SEVERAL, "reports", name="a-ring-of-61-devices-of-several-questions", trials=1500, devices=61)
def ring_of_devices(device, devices):
    """Every device has coins of its own number, and the numbers begin anew after so many."""
    memory = device.process.memory
    seed = memory.setdefault("seed", device.entropy(32))
    memory["next"] = (memory.get("next", -1) + 1) % devices
    return device.perturbed(coins=HashCoins(seed + memory["next"].to_bytes(4, "big")))


@leak(COINS, question("de", 6, 1.0), "reports", name="a-file-of-random-numbers-read-again", trials=3000, words=301)
@leak(COINS, SHE, "reports", name="a-buffer-that-is-not-filled-again", trials=3000, words=5000)
def ring_of_words(device, words):
    """Coins are words of a file, one after the other, and from the beginning after its end: how many an answer takes
    depends on them.
    """
    memory = device.process.memory
    if not memory:
        memory["coins"] = RingCoins(device.coins.words(words))
    return device.perturbed(coins=memory["coins"])


@leak(None, question("de", 6, 1.0), "reports", trials=100)
def seeded_by_the_millisecond(device):
    """Coins are a hash of the millisecond at which the process began, one of a day, and of the device's place."""
    memory = device.process.memory
    began = memory.setdefault("began", int.from_bytes(device.entropy(4), "big") % 86_400_000)
    memory["place"] = memory.get("place", 0) + 1
    return device.perturbed(coins=HashCoins(b"%d %d" % (began, memory["place"])))


@leak(COINS, question("oue", 4, 1.0), "reports", trials=1500)
def coins_of_two_queues(device):
    """Of ten devices in a row the last five get the coins of the first five, in the same order."""
    memory = device.process.memory
    kept, place = memory.setdefault("kept", []), memory.get("place", 0)
    memory["place"] = (place + 1) % 10
    if place < 5:
        kept.append(device.entropy(32))
    return device.perturbed(coins=HashCoins(kept[-1] if place < 5 else kept[place - 10]))


@leak(COINS, campaign(4, discrete="she", epsilon=0.1), "perturb")
def memoised_by_value(device, asked, item):
    """A cache of answers by question and true item is shared by all devices of the process."""
    key = asked.index, item
    if key not in device.process.memory:
        device.process.memory[key] = asked.perturb(item, device.coins)
    return device.process.memory[key]


# --- what is remembered ---


@leak(RETRY, DE, "again", name="fresh-answer-under-a-new-id", stored=False)
@leak(RETRY, DE, "again", name="fresh-noise-under-the-same-id", stored=True)
def report_made_again(device, sent, stored):
    """Nothing is stored before it is sent: a device that is asked again draws, perturbs and names its report anew. Or
    the secret is stored, the report is not: another answer goes out under the same id.
    """
    device.secret = device.secret if stored else device.entropy(32)
    return device.send()


@leak(RETRY, DE, "again", name="stored-for-one-class", trials=100, times=(1, 0))
@leak(RETRY, DE, "again", name="retries-by-class", times=(1, 2))
def times_by_class(device, sent, times):
    """The outbox is written for one class only: for the other the write fails unnoticed. Or one class sends its report
    again twice, having queued it in two places.
    """
    return sent * times[device.class_index]


@leak(RETRY, DE, "again", name="fresh-noise-at-the-third-send", trials=100, nth=3)
@leak(RETRY, DE, "again", name="fresh-noise-at-the-sixth-send", trials=100, nth=6)
def made_again_in_the_end(device, sent, nth):
    """A report that was sent in vain so often is drawn anew, "for it must be damaged"."""
    times = device.process.memory[device.person.device] = device.process.memory.get(device.person.device, 1) + 1
    return device.send() if times >= nth else sent


@leak(None, DE, "study", trials=100)
def study_answered_after_weeks(device):
    """A device forgets after weeks that it has answered another campaign of a study."""
    weeks = (device.process.now - Process(0, ()).now).days // 7
    return None if weeks > 1 else Device.study(device)


@leak(None, DE, "send", trials=100)
def a_delay_of_ten_microseconds(device):
    """For one class every answer takes a little longer."""
    until = time.perf_counter() + 1e-5 * device.class_index
    while time.perf_counter() < until:
        pass
    return Device.send(device)


@leak(STUDY, DE, "study", trials=100)
def study_answered_twice(device):
    """A device forgets that it has answered another campaign of a study."""


@leak(BEFORE, DE, "item", trials=6000)
def previous_record_fills_gaps(device, asked):
    """One dictionary serves all devices of the process: what a record lacks, it gets from the one before."""
    device.process.memory.update(device.person.record)
    device.person = Person(dict(device.process.memory), device.person.label)
    return Device.item(device, asked)


@leak(BESIDE, DE, "send")
def previous_upload_sent_again(device):
    """A buffer is not emptied: a device of one class sends the upload of the device before as well."""
    left_over, sent = device.process.memory.get("sent", ()), Device.send(device)
    device.process.memory["sent"] = sent
    return left_over * device.class_index + sent


# --- what a flaw is made of ---


class HashCoins(Coins):
    """SHA-256 of a seed and a counter: as good as its seed."""

    def __init__(self, seed):
        self._seed, self._counter = seed, 0

    def words(self, count):
        places = range(self._counter + 1, self._counter + 1 + count)
        self._counter += count
        return [
            int.from_bytes(hashlib.sha256(self._seed + place.to_bytes(8, "big")).digest()[:8], "big")
            for place in places
        ]


class RingCoins(Coins):
    """So many words, again and again."""

    def __init__(self, words):
        self._words, self._next = words, 0

    def words(self, count):
        taken = [self._words[(self._next + place) % len(self._words)] for place in range(count)]
        self._next += count
        return taken


def record_hash(device):
    return hashlib.sha256(json.dumps([dict(device.person.record), device.person.label]).encode()).digest()[:16]


def keyed(message):
    return hmac.digest(b"known to the vendor, and to no auditor", message, "sha256")
