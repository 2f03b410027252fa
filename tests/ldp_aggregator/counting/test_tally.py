"""Tallies are exact: any order, any sharding, any merge gives the same bits."""

from __future__ import annotations

import random

import pytest

from ldp_aggregator import Tally
from ldp_client.answering import perturb
from protocols import Report, UploadError, encode_upload
from simulations.fidelities.coins import SeededCoins

FEATURE = {"kind": "categorical", "missing": False, "values": ["a", "b", "c"]}


@pytest.fixture
def uploads(make_campaign):
    campaign = make_campaign(FEATURE, discrete="oue")
    coins = SeededCoins(7)
    people = [({"x": "abc"[i % 3]}, f"c{i % 2}") for i in range(300)]
    return campaign, [encode_upload(perturb(campaign, record, label, coins=coins)) for record, label in people]


def test_shards_in_any_order_add_up_to_one_node(uploads):
    campaign, sent = uploads
    whole = Tally.of_uploads(campaign, sent)
    shuffled = random.Random(1).sample(sent, len(sent))
    shards = [Tally.of_uploads(campaign, shuffled[start::7]) for start in range(7)]
    total = Tally(campaign)
    for shard in reversed(shards):
        total.merge(shard)
    assert total == whole
    assert shards[0] + shards[1] == shards[1] + shards[0]
    assert whole.n.sum() == 300


def test_tallies_differ_when_one_count_does(uploads):
    campaign, sent = uploads
    whole, fewer = Tally.of_uploads(campaign, sent), Tally.of_uploads(campaign, sent[1:])
    assert whole != fewer
    assert whole != "a tally"


def test_a_report_no_device_can_have_sent_is_left_out(make_campaign):
    campaign = make_campaign(FEATURE, discrete="oue")
    good, bad = Report(1, b"a" * 16, bytes([0b111111])), Report(1, b"b" * 16, bytes([0b11000000]))
    tally = Tally.of_uploads(campaign, [encode_upload([good, bad, good])])
    assert tally.n.tolist() == [0, 2]
    assert tally.counts[1].tolist() == [2] * 6


def test_bytes_that_are_no_upload_raise(make_campaign):
    with pytest.raises(UploadError):
        Tally.of_uploads(make_campaign(FEATURE), [b"\x00"])


def test_tallies_of_different_campaigns_do_not_merge(make_campaign):
    one, other = make_campaign(FEATURE), make_campaign(FEATURE, epsilon=2)
    with pytest.raises(ValueError, match="do not add up"):
        Tally(one).merge(Tally(other))


def test_counts_of_the_wrong_length_are_refused(make_campaign):
    tally = Tally(make_campaign(FEATURE))
    with pytest.raises(ValueError, match="question 1 has 6 counts, not 2"):
        tally.add(1, 1, tally.counts[0])
    assert not tally.n.any()
