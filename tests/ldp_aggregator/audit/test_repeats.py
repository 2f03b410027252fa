"""What repeats among the ids of fresh devices is told, and chance is not."""

import os
from types import SimpleNamespace

import msgpack
import numpy as np
import pytest

from ldp_aggregator.audit.asking.observations import Seen, read_tables
from ldp_aggregator.audit.repeats import coins_within, suspicious_lags, uneven_ids

RUNS = 80


def told(ids, alpha):
    table = SimpleNamespace(rows=slice(0, len(ids)), shape=SimpleNamespace(blocks=[SimpleNamespace(ids=slice(0, 16))]))
    table.ids = ids
    return uneven_ids(SimpleNamespace(tables=[table], tests=np.arange(len(ids)) % 2 == 1), alpha)


@pytest.mark.parametrize("alpha", [0.2, 0.5])
def test_even_ids_are_called_uneven_no_more_often_than_may_be(alpha):
    """Many bits and bytes are looked at, and the most suspicious are tested: the share of each is so much smaller."""
    randomly = np.random.default_rng(7)
    alarms = sum(told(randomly.integers(0, 256, (400, 16), dtype=np.uint8), alpha) is not None for _ in range(RUNS))
    assert alarms <= alpha * RUNS


def test_a_bit_that_leans_is_told_with_its_numbers():
    randomly = np.random.default_rng(7)
    ids = randomly.integers(0, 256, (400, 16), dtype=np.uint8)
    ids[:, 3] |= (randomly.random(400) < 0.6).astype(np.uint8) << 5
    assert "byte 3, bit 5 is 1 in" in told(ids, 0.001)


@pytest.mark.parametrize("lag", [1, 2, 97, 700])
@pytest.mark.parametrize("values", [2, 6, 10_000])
def test_of_all_lags_the_one_at_which_answers_repeat_is_looked_at(lag, values):
    """Also where nearly half of the answers are to another question: 0 is none."""
    randomly = np.random.default_rng(3)
    keys = np.resize(randomly.integers(1, 1 + values, lag), 2000).astype(np.uint64)
    fresh = randomly.random(2000) < 0.2
    keys[fresh] = randomly.integers(1, 1 + values, int(fresh.sum()))
    keys[randomly.random(2000) < 0.4] = 0
    assert any(found % lag == 0 for found in suspicious_lags(keys))
    assert suspicious_lags(np.zeros(2000, dtype=np.uint64)) == []


@pytest.mark.parametrize("process", [0, 1])
@pytest.mark.parametrize("person", [0, 1])
def test_coins_that_come_again_in_one_process_of_one_person_are_told(process, person):
    """In the other process, and of the other person, they are tossed anew."""
    people, processes = (column.ravel() for column in np.indices((2, 2)).repeat(200, axis=2))
    payloads = np.random.default_rng(5).integers(0, 8, people.size)
    repeating = (people == person) & (processes == process)
    payloads[repeating] = np.resize(payloads[repeating][:7], 200)
    answers = [(msgpack.packb([1, [[0, os.urandom(16), bytes([payload])]]]),) for payload in payloads]
    seen = Seen(2, people, processes, read_tables(answers))
    told = [[alike.excessive(1e-6) for alike in coins_within(seen, one)] for one in (0, 1)]
    assert [any(found) for found in told] == [person == 0, person == 1]
