"""The gateway of a campaign: one key configuration, in one encoding, that devices can seal to."""

import base64
import json
from datetime import datetime, timedelta, timezone

import pytest
from drafts import draft, text

from ldp_protocols import Campaign, DocumentError, DraftError

# RFC 9458, appendix A.
CONFIGURATION = bytes.fromhex(
    "01002031e1f05a740102115220e9af918f738674aec95f54db6e04eb705aae8e79815500080001000100010003"
)
KEY = CONFIGURATION[3:35]


def written(raw):
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def drafted(gateway):
    return draft(text("age", "young", "old"), gateway=gateway)


def configuration(*, key=KEY, kem=b"\x00\x20", pairs=(b"\0\1\0\1",), length=None):
    joined = b"".join(pairs)
    return b"\x07" + kem + key + (len(joined) if length is None else length).to_bytes(2, "big") + joined


def test_a_document_carries_what_the_draft_says_and_other_documents_are_as_they_were():
    campaign = Campaign.compile(drafted({"key": written(CONFIGURATION)}))
    assert json.loads(campaign.document)["gateway"] == {"key": written(CONFIGURATION)}
    gateway = Campaign.parse(campaign.document, campaign.id).gateway
    assert (gateway.key_id, gateway.public_key, gateway.aeads) == (1, KEY, (1, 3))
    without = Campaign.compile(drafted(None))
    assert without.gateway is None
    assert without.document == Campaign.compile(draft(text("age", "young", "old"))).document
    assert b"gateway" not in without.document


@pytest.mark.parametrize("pairs", [(b"\0\1\0\1",), (b"\0\1\0\3",), (b"\0\1\0\3", b"\0\1\0\1")])
def test_each_of_the_two_ciphers_may_stand_alone_and_their_order_is_kept(pairs):
    raw = configuration(pairs=pairs)
    gateway = Campaign.compile(drafted({"key": written(raw)})).gateway
    assert gateway.aeads == tuple(pair[3] for pair in pairs)
    assert gateway.key == written(raw)


WRONG = {
    "padding": written(CONFIGURATION) + "=",
    "another alphabet": base64.b64encode(bytes([255]) * 45).decode(),
    "loose bits": written(configuration())[:-1] + "R",
    "no text of bytes": "é",
    "half a key": written(CONFIGURATION[:20]),
    "a byte too many": written(CONFIGURATION + b"\0"),
    "a length that is not its own": written(configuration(length=8)),
    "a list of configurations": written(len(CONFIGURATION).to_bytes(2, "big") + CONFIGURATION),
    "another KEM": written(configuration(kem=b"\x00\x10")),
    "no cipher": written(configuration(pairs=())),
    "AES-256-GCM": written(configuration(pairs=(b"\0\1\0\2",))),
    "HKDF-SHA512": written(configuration(pairs=(b"\0\3\0\1",))),
    "a cipher twice": written(configuration(pairs=(b"\0\1\0\1", b"\0\1\0\1"))),
    "part of a pair": written(configuration(pairs=(b"\0\1\0\1", b"\0\1"))),
    **{
        f"a point of small order: {number:x}": written(configuration(key=number.to_bytes(32, "little")))
        for number in (0, 1, 2**255 - 20, 2**255 - 19, 2**255 - 18, 2**255, 2**255 + 1)
    },
    "a point beside the field": written(configuration(key=(2**255 - 19 + 9).to_bytes(32, "little"))),
    "a point with its top bit set": written(configuration(key=(2**255 + 9).to_bytes(32, "little"))),
    "one of order 8": written(
        configuration(key=bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"))
    ),
    "another of order 8": written(
        configuration(key=bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"))
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_no_device_can_seal_to_is_refused_in_drafts_and_documents(name):
    with pytest.raises(DraftError, match=r"gateway\.key"):
        Campaign.compile(drafted({"key": WRONG[name]}))
    document = Campaign.compile(drafted({"key": written(CONFIGURATION)})).document
    changed = document.replace(written(CONFIGURATION).encode(), WRONG[name].encode())
    assert changed != document
    with pytest.raises(DocumentError, match=r"gateway\.key"):
        Campaign.parse(changed)


@pytest.mark.parametrize(
    "gateway", ["", [], {}, {"key": None}, {"key": 1}, {"key": written(CONFIGURATION), "url": "x"}]
)
def test_a_gateway_is_an_object_with_a_key_and_nothing_else(gateway):
    with pytest.raises(DraftError, match="gateway"):
        Campaign.compile(drafted(gateway))


def key_of(number):
    return written(bytes([number]) + configuration()[1:])


JUNE, JULY = "2027-06-01T00:00:00Z", "2027-07-01T00:00:00Z"


def test_of_several_keys_each_has_its_time():
    text = f"{key_of(1)} {JUNE} {key_of(2)} {JULY} {key_of(3)}"
    campaign = Campaign.compile(drafted({"key": text}))
    assert json.loads(campaign.document)["gateway"] == {"key": text}
    gateway = Campaign.parse(campaign.document, campaign.id).gateway
    assert (gateway.key, [key.key for key in gateway.keys]) == (text, [key_of(1), key_of(2), key_of(3)])
    june, july = (datetime(2027, month, 1, tzinfo=timezone.utc) for month in (6, 7))
    moments = (-1e18, june.timestamp() - 1, june.timestamp(), july.timestamp() - 1, july.timestamp(), 1e18)
    assert [gateway.at(moment).key_id for moment in moments] == [1, 1, 2, 2, 3, 3]
    for moment, needed in ((june + timedelta(days=29), [1, 2, 3]), (june + timedelta(days=30), [2, 3])):
        assert [key.key_id for key in gateway.needed(moment)] == needed
    assert [key.key_id for key in gateway.needed(july + timedelta(days=3000))] == [3]


@pytest.mark.parametrize(
    "text",
    [
        f"{key_of(1)} {JUNE}",
        f"{JUNE} {key_of(1)}",
        f"{key_of(1)} {key_of(2)}",
        f"{key_of(1)}  {JUNE} {key_of(2)}",
        f"{key_of(1)} {JUNE} {key_of(2)} ",
        f"{key_of(1)} {JUNE} {key_of(1)}",
        f"{key_of(1)} {JULY} {key_of(2)} {JUNE} {key_of(3)}",
        f"{key_of(1)} {JUNE} {key_of(2)} {JUNE} {key_of(3)}",
        f"{key_of(1)} 2027-06-01 {key_of(2)}",
        f"{key_of(1)} 2027-06-31T00:00:00Z {key_of(2)}",
        f"{key_of(1)} {JUNE} {WRONG['no cipher']}",
        " ".join(f"{key_of(number)} {2000 + number}-06-01T00:00:00Z" for number in range(15)) + f" {key_of(99)}",
    ],
)
def test_keys_without_their_times_or_in_another_order_are_none(text):
    with pytest.raises(DraftError, match=r"gateway\.key"):
        Campaign.compile(drafted({"key": text}))
