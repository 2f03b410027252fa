"""Report ids, and the upload codec: one valid encoding, and a DocumentError for every other byte string."""

import hashlib
import hmac
import struct
import time

import msgpack
import pytest
from drafts import draft, number, text
from hypothesis import given
from hypothesis import strategies as st

from ldp_protocols import Campaign, DocumentError, Report, decode_upload, encode_upload
from ldp_protocols.wire import Block, encode_blocks, encode_padded, report_id

MOST_PADDED = 512 << 10


PRIVACY = {"epsilon": 1.0, "discrete": "oue", "continuous": "laplace"}
CAMPAIGN = Campaign.compile(draft(text("u", "1", "2", "3"), number("v"), privacy=PRIVACY))
WIDTHS = [question.mechanism.width for question in CAMPAIGN.questions]
VALID = encode_blocks(
    (
        Block(question, bytes(range(16 * count)), bytes(range(WIDTHS[question] * count)))
        for question, count in ((0, 2), (1, 1), (3, 1))
    ),
    CAMPAIGN,
)
GOOD = [0, bytes(16), bytes(WIDTHS[0])]
ID, PAYLOAD = b"\xc4\x10" + bytes(16), b"\xc4\x01\x00"
scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=5)
anything = st.recursive(
    scalars | st.binary(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.integers(0, 9), inner, max_size=2),
    max_leaves=8,
)
messages = (
    anything | anything.map(lambda value: [2, [value]]) | anything.map(lambda value: [2, [[0, bytes(16), value]]])
)
SECRET = bytes(range(32))


def packed(value):
    return filled(msgpack.packb(value, use_bin_type=True))


def filled(data):
    """As long as an upload has to be."""
    return data.ljust(CAMPAIGN.upload_bytes, b"\0")


def refused(data):
    with pytest.raises(DocumentError) as error:
        decode_upload(data, CAMPAIGN)
    assert error.value.code == "malformed-upload"
    return str(error.value)


@given(
    st.lists(st.tuples(st.integers(0, len(WIDTHS) - 1), st.binary(min_size=16, max_size=16)), min_size=1, max_size=30)
)
def test_reports_round_trip_grouped_by_question_in_their_order(asked):
    reports = [Report(question, id_, bytes([n] * WIDTHS[question])) for n, (question, id_) in enumerate(asked)]
    blocks = decode_upload(encode_upload(reports, CAMPAIGN), CAMPAIGN)
    assert sum(block.count for block in blocks) == len(reports)
    for block in blocks:
        members = [report for report in reports if report.question == block.question]
        assert block.ids == b"".join(report.id for report in members)
        assert block.payloads == b"".join(report.payload for report in members)


def test_a_flipped_byte_is_refused_or_is_content():
    """Inside ids, payloads and question numbers other bytes are other valid uploads; each is the one encoding of its
    own blocks.
    """
    accepted = 0
    for position in range(len(VALID)):
        for flip in range(1, 256):
            data = VALID[:position] + bytes([VALID[position] ^ flip]) + VALID[position + 1 :]
            try:
                blocks = decode_upload(data, CAMPAIGN)
            except DocumentError:
                continue
            accepted += 1
            assert encode_blocks(blocks, CAMPAIGN) == data
    content = sum(len(block.ids) + len(block.payloads) for block in decode_upload(VALID, CAMPAIGN))
    # One flip more: question 3 becomes question 2, of the same width and still in order.
    assert WIDTHS == [1, 1, 8, 8]
    assert accepted == content * 255 + 1


@pytest.mark.parametrize(
    "value",
    [
        *(None, b"", "text", [], [2, []], [0, [GOOD]], [True, [GOOD]], [1, [GOOD]], [2.0, [GOOD]], [2, GOOD]),
        *([2, [block]] for block in (None, [*GOOD, 1], *([number, *GOOD[1:]] for number in (-1, 2**63, 0.0)))),
        *([2, [[0, bytes(17), bytes(WIDTHS[0])]]], [2, [[0, bytes(16), bytes(WIDTHS[0] + 1)]]]),
        *([2, [[0, "i" * 16, bytes(WIDTHS[0])]]], [2, [[0, [0] * 16, bytes(WIDTHS[0])]]]),
        *({2: [GOOD]}, [2, {0: GOOD}], msgpack.ExtType(5, b""), [2, [[msgpack.ExtType(0, b"\0"), *GOOD[1:]]]]),
    ],
)
def test_any_other_value_is_refused(value):
    """Beside those of the test vectors."""
    refused(packed(value))


def test_the_reason_names_the_question_and_what_would_be_right_and_nothing_is_encoded_without_reports():
    with pytest.raises(DocumentError, match="at least one report"):
        encode_upload([], CAMPAIGN)
    assert "the campaign has 4" in refused(packed([2, [[4, *GOOD[1:]]]]))
    assert "one or more times 16 bytes, not 15" in refused(packed([2, [[0, bytes(15), b""]]]))
    assert f"question 2: payloads must be {2 * WIDTHS[2]} bytes, not 3" in refused(
        packed([2, [[2, bytes(32), bytes(3)]]])
    )
    assert "strictly increasing" in refused(packed([2, [GOOD, GOOD]]))


@pytest.mark.parametrize(
    "data",
    [
        *(head + ID + PAYLOAD for head in (b"\x92\xd0\x02\x91\x93\x00", b"\xdc\x00\x02\x02\x91\x93\x00")),
        *(head + ID + PAYLOAD for head in (b"\xdd\x00\x00\x00\x02\x02\x91\x93\x00", b"\x92\x02\xdc\x00\x01\x93\x00")),
        *(head + ID + PAYLOAD for head in (b"\x92\x02\x91\xdc\x00\x03\x00", b"\x92\x02\x91\x93\xcd\x00\x00")),
        b"\x92\x02\x91\x93\x00\xc5\x00\x10" + bytes(16) + PAYLOAD,
        b"\x92\x02\x91\x93\x00\xc6\x00\x00\x00\x10" + bytes(16) + PAYLOAD,
        b"\x92\x02\x91\x93\x00" + ID + b"\xc5\x00\x01\x00",
        b"\x92\x02\x91\x93\x00\xb0" + bytes(16) + PAYLOAD,
        b"\x92\x02\x91\x93\x00\xd9\x10" + bytes(16) + PAYLOAD,
    ],
)
def test_a_longer_encoding_of_a_valid_upload_is_refused(data):
    shortest = b"\x92\x02\x91\x93\x00" + ID + PAYLOAD
    assert decode_upload(filled(shortest), CAMPAIGN)
    refused(filled(data))


@pytest.mark.parametrize("answers", ["one", "all"])
@pytest.mark.parametrize("windows", [None, {"from": "2027-01-04T00:00:00Z", "length": "P1D", "count": 100}])
def test_whatever_a_device_was_asked_its_upload_has_one_length_and_every_other_is_refused(answers, windows):
    features = [text("u", *map(str, range(20))), *(number(f"v{place}") for place in range(70))]
    privacy = {"epsilon": 2.0, "answers": answers, "discrete": "oue", "continuous": "laplace"}
    campaign = Campaign.compile(draft(*features, privacy=privacy, windows=windows))
    bare = set()
    for question in campaign.questions * (1 if windows is None else 2):
        first = len(campaign.counted) - len(campaign.questions) if windows and len(bare) % 2 else 0
        pools = [pool for pool in campaign.pools if question not in pool]
        answered = sorted([question, *(pool[-1] for pool in pools)], key=lambda one: one.index)
        reports = [Report(first + one.index, bytes(16), bytes(one.mechanism.width)) for one in answered]
        upload = encode_upload(reports, campaign)
        assert len(upload) == campaign.upload_bytes
        assert sum(block.count for block in decode_upload(upload, campaign)) == len(reports)
        for other in (upload + b"\0", upload[:-1]):
            with pytest.raises(DocumentError):
                decode_upload(other, campaign)
        bare.add(len(encode_padded(reports, 0)))
    assert len(bare) > 1 or (answers, windows) == ("all", None)
    assert max(bare) == campaign.upload_bytes


def test_what_is_longer_than_half_a_mebibyte_is_not_padded_to_its_length():
    features = [text(f"u{place}", *map(str, range(3000))) for place in range(40)]
    campaign = Campaign.compile(draft(*features, privacy={"epsilon": 8.0, "answers": "all", "discrete": "she"}))
    assert campaign.longest_upload > MOST_PADDED == campaign.upload_bytes
    question = campaign.questions[3]
    upload = encode_upload([Report(3, bytes(16), bytes(question.mechanism.width))], campaign)
    assert len(upload) == MOST_PADDED
    assert decode_upload(upload, campaign)


def test_an_upload_may_have_a_block_for_every_window_of_every_question():
    windows = {"from": "2027-01-04T00:00:00Z", "length": "P7D", "count": 5}
    series = Campaign.compile(draft(text("u", "1", "2"), number("v"), privacy=PRIVACY, windows=windows))
    widths = [question.mechanism.width for question in series.questions] * 5
    reports = [Report(place, bytes([place]) * 16, bytes(width)) for place, width in enumerate(widths)]
    blocks = decode_upload(encode_upload(reports, series), series)
    assert [block.question for block in blocks] == list(range(20))
    with pytest.raises(DocumentError, match="question 20 does not exist"):
        decode_upload(encode_blocks([*blocks[1:], Block(20, bytes(16), bytes(widths[0]))], series), series)


@pytest.mark.parametrize(
    "data",
    [
        *(b"\x92\x02\xdf\xff\xff\xff\xff", b"\x92\x02\x91\x93\x00\xc6\xff\xff\xff\xff"),
        *(b"\x92\x02\x91\x93\x00\xdb\xff\xff\xff\xff", b"\x92\x02\x91\x93\x00\xc9\xff\xff\xff\xff\x01"),
        *(b"\x91" * 100_000 + b"\x01", b"\x81\x01" * 100_000, b"\xc1"),
    ],
)
def test_lying_lengths_deep_nesting_and_reserved_bytes_are_refused(data):
    refused(data)


def test_a_megabyte_of_lying_array_lengths_is_refused_at_once():
    length = 1 << 20
    data = (b"\xdd" + struct.pack(">I", length)) * 1000 + b"\x00" * length
    start = time.process_time()
    refused(data)
    assert time.process_time() - start < 0.5


@given(st.binary(max_size=60) | messages.map(packed))
def test_bytes_are_refused_or_the_one_encoding_of_what_they_say(data):
    try:
        blocks = decode_upload(data, CAMPAIGN)
    except DocumentError:
        return
    assert encode_blocks(blocks, CAMPAIGN) == data


def documented_id(campaign, slot):
    message = campaign.id.encode("ascii") + slot.to_bytes(4, "little")
    return hmac.new(SECRET, message, hashlib.sha256).digest()[:16]


def test_a_device_that_answers_one_question_has_one_id_whatever_it_was_asked_and_otherwise_one_per_group():
    assert {report_id(SECRET, CAMPAIGN, one) for one in CAMPAIGN.questions} == {documented_id(CAMPAIGN, 0)}
    everything = Campaign.compile(draft(text("u", "1", "2"), number("v"), privacy={"epsilon": 1.0, "answers": "all"}))
    for question in everything.questions:
        assert report_id(SECRET, everything, question) == documented_id(everything, question.group)
    assert len({report_id(SECRET, everything, one) for one in everything.questions}) == len(everything.groups) == 3
