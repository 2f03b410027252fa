"""Tallies are exact, in any order, sharding and merge."""

import random

import pytest

from ldp_aggregator import Tally
from ldp_client.answering import perturb
from ldp_protocols import DocumentError, Report, encode_upload
from ldp_simulations.fidelities import SeededCoins

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
