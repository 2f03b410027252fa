"""Reading uploads of one report together: what is recognised is what the strict decoder reads, and nothing else."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp_aggregator.counting.singles import read_singles
from protocols import Campaign, Report, UploadError, decode_upload, encode_upload
from protocols.wire.reports import ID_BYTES


def campaign_of(features, discrete="auto"):
    """Enough features for questions whose number takes one, two and three bytes."""
    return Campaign.compile(
        {
            "version": 1,
            "title": "Many",
            "label": {"name": "label", "classes": ["a", "b"]},
            "features": [
                {
                    "name": f"f{n}",
                    "kind": "categorical",
                    "missing": False,
                    "values": [str(v) for v in range(2 + 37 * (n % 9))],
                }
                for n in range(features)
            ],
            "privacy": {"epsilon": 1.0, "discrete": discrete},
        }
    )


CAMPAIGNS = [campaign_of(3, "de"), campaign_of(40, "oue"), campaign_of(300)]


def report(campaign, question, filler=7):
    width = campaign.questions[question].mechanism.width
    return Report(question, bytes([filler]) * ID_BYTES, bytes([filler]) * width)


@st.composite
def damaged_uploads(draw, campaign):
    """Sound uploads of one report or two, and what becomes of them on the way."""
    questions = st.integers(0, len(campaign.questions) - 1)
    chosen = draw(st.lists(questions, min_size=1, max_size=draw(st.sampled_from([1, 1, 1, 2])), unique=True))
    body = bytearray(encode_upload([report(campaign, question, draw(st.integers(0, 255))) for question in chosen]))
    damage = draw(st.sampled_from(["none", "none", "flip", "cut", "longer", "other", "wide", "insert"]))
    place = draw(st.integers(0, len(body) - 1))
    if damage == "flip":
        body[place] ^= 1 << draw(st.integers(0, 7))
    elif damage == "cut":
        del body[place:]
    elif damage == "longer":
        body += draw(st.binary(min_size=1, max_size=20))
    elif damage == "other":
        return draw(st.binary(max_size=60))
    elif damage == "insert":
        body[place:place] = draw(st.binary(min_size=1, max_size=3))
    elif damage == "wide":  # The same content in a longer encoding.
        value = msgpack.unpackb(bytes(body))
        question, ids, payload = value[1][0]
        return b"\x92\x01\x91\x93\xcd" + question.to_bytes(2, "big") + msgpack.packb(ids) + msgpack.packb(payload)
    return bytes(body)


def strictly(campaign, upload):
    """The blocks of the strict decoder where they are one report, else None."""
    try:
        blocks = decode_upload(upload, campaign)
    except UploadError:
        return None
    return blocks[0] if len(blocks) == 1 and blocks[0].count == 1 else None


@pytest.mark.parametrize("campaign", CAMPAIGNS, ids=["three", "forty", "three hundred"])
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_exactly_what_the_strict_decoder_reads_is_recognised(campaign, data):
    uploads = data.draw(st.lists(damaged_uploads(campaign), min_size=1, max_size=8))
    found = read_singles(campaign, uploads)
    read = {}
    position = 0
    for block in found.blocks:
        width = campaign.questions[block.question].mechanism.width
        for n in range(block.count):
            piece = (block.ids[16 * n : 16 * n + 16], block.payloads[width * n : width * n + width])
            read[found.order[position]] = (block.question, *piece)
            position += 1
    assert position == len(found.order)
    wanted = {place: strictly(campaign, upload) for place, upload in enumerate(uploads)}
    assert read == {n: (b.question, b.ids, b.payloads) for n, b in wanted.items() if b is not None}
    assert found.others == [place for place, block in wanted.items() if block is None]
    questions = [block.question for block in found.blocks]
    assert questions == sorted(set(questions))


def test_reports_to_one_question_keep_the_order_of_their_uploads():
    campaign = CAMPAIGNS[1]
    asked = [5, 2, 5, 0, 2, 5]
    found = read_singles(campaign, [encode_upload([report(campaign, q, n)]) for n, q in enumerate(asked)])
    assert (found.order, found.others) == ([3, 1, 4, 0, 2, 5], [])


def test_every_flipped_bit_is_judged_as_the_strict_decoder_does():
    for campaign, question in ((CAMPAIGNS[0], 1), (CAMPAIGNS[2], 200), (CAMPAIGNS[2], 299)):
        whole = encode_upload([report(campaign, question)])
        flipped = [
            bytes(byte ^ (1 << bit if place == at else 0) for place, byte in enumerate(whole))
            for at in range(min(len(whole), 40))
            for bit in range(8)
        ]
        found = read_singles(campaign, flipped)
        assert set(found.order) == {n for n, upload in enumerate(flipped) if strictly(campaign, upload) is not None}
