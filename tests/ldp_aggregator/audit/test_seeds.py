"""Noise that is computed from public bytes is found, whatever the client makes of it; noise that is not, is not."""

import hashlib
import hmac
import random

import msgpack
import numpy as np
import pytest
from scipy.stats import binom

from ldp_aggregator.audit.asking.observations import Seen, read_tables
from ldp_aggregator.audit.seeds import _campaign_id, from_integers, public_noise, small_seeds

DOCUMENT = '{"any": "document"}'
COUNT = 400


def seen_of(ids, payloads):
    answers = [(msgpack.packb([1, [[0, one, payload]]]),) for one, payload in zip(ids, payloads, strict=True)]
    zeros = np.zeros(len(answers), dtype=np.int64)
    return Seen(1, zeros, zeros, read_tables(answers))


def random_ids(seed, count=COUNT):
    rng = np.random.default_rng([2**40, seed])
    return [rng.bytes(16) for _ in range(count)]


STREAMS = {
    "a hash of the id": lambda one, place: hashlib.sha256(one + bytes(8)).digest()[:8],
    "a hash of the campaign and the id": lambda one, place: hashlib.sha256(_campaign_id(DOCUMENT) + one).digest()[:8],
    "an HMAC under the id": lambda one, place: hmac.digest(one, bytes(4), "sha256")[:8],
    "the id itself": lambda one, place: one[:8],
    "Python's generator": lambda one, place: random.Random(int.from_bytes(one[:4], "big")).randbytes(8),
    "numpy's": lambda one, place: np.random.default_rng(int.from_bytes(one, "little")).bytes(8),
    "numpy's old one": lambda one, place: np.random.RandomState(int.from_bytes(one[:4], "little")).bytes(8),
    "the device's place": lambda one, place: hashlib.sha256(place.to_bytes(8, "little")).digest()[:8],
}


@pytest.mark.parametrize("stream", STREAMS)
def test_a_coin_that_public_bytes_give_is_found(stream):
    """A word decides whether one of four values is kept, and another one which other is sent."""
    ids = random_ids(1)
    payloads = []
    for place, one in enumerate(ids):
        word = STREAMS[stream](one, place)
        kept = int.from_bytes(word, "little") < 0.4 * 2**64
        payloads.append(bytes([0 if kept else 1 + word[0] % 3]))
    found = public_noise(DOCUMENT, seen_of(ids, payloads), [0], 0, 1e-6)
    assert found is not None
    assert "answers follow from public bytes" in found


def test_coins_of_a_key_that_nobody_has_are_not_and_a_sound_client_is_suspected_as_seldom_as_is_stated():
    """False alarm of the test: 1e-6, if the tail is as is stated; seeds are fixed."""
    ids = random_ids(2)
    payloads = [hmac.digest(b"a secret", one, "sha256")[:1] for one in ids]
    assert public_noise(DOCUMENT, seen_of(ids, payloads), [0], 0, 1e-3) is None
    times, alpha, rng = 10, 0.02, np.random.default_rng(3)
    answers = [seen_of(random_ids(100 + n, 120), [rng.bytes(1) for _ in range(120)]) for n in range(times)]
    suspected = sum(public_noise(DOCUMENT, seen, [0], 0, alpha) is not None for seen in answers)
    assert suspected <= binom.ppf(1 - 1e-6, times, alpha)


def test_ids_of_numbers_that_anybody_counts_to_are_found():
    secret = hashlib.sha256((77).to_bytes(4, "big")).digest()
    for made in (
        random.Random(4321).randbytes(16),
        np.random.default_rng(7).bytes(16)[::-1],
        hmac.digest(secret, _campaign_id(DOCUMENT) + bytes(4), "sha256")[:16],
    ):
        assert small_seeds(DOCUMENT, [*random_ids(4, 50), made], 1e-6) is not None
    assert small_seeds(DOCUMENT, random_ids(5, 50), 1e-6) is None


def test_generators_are_those_that_they_are_called():
    """By the numbers of their publications and documentations."""
    streams = {
        (name, bits): np.frombuffer(generator([seed]).tobytes(), dtype=kind)
        for bits, seed, kind in ((64, 1234567, "<u8"), (64, 42, "<i4"), (32, 0, "<u4"))
        for name, generator in from_integers(bits)
        if (name, seed) in {("splitmix64", 1234567), ("java.util.Random", 42), ("mulberry32", 0)}
    }
    assert streams["splitmix64", 64][:2].tolist() == [6457827717110365317, 3203168211198807973]
    assert streams["java.util.Random", 64][:2].tolist() == [-1170105035, 234785527]
    assert streams["mulberry32", 32][0] / 2**32 == 0.26642920868471265
