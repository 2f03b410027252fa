"""Reports and uploads: one device's perturbed answer to one question, under an id that makes retries harmless; and the
one valid encoding of some of them, canonical msgpack.

``id = HMAC-SHA256(device secret, campaign id || slot)[:16]``, the campaign id as its 43 ASCII characters and the slot
as four bytes, little-endian: 0 where a device answers one question, else the question's group. A retry meets its own
id; the id says nothing about the device and links no two campaigns.

The drawn question is a keyed hash of the same secret (:mod:`ldp_client.draw`). Its messages begin with another
word and have another length, so that no message of one is a message of the other and neither tells about the other.

An upload is ``[2, [[question, ids, payloads], ...]]``: questions strictly increasing, ``ids`` 16 n bytes, ``payloads``
width n bytes, n >= 1. A device sends one block with n = 1; a relay sends many reports in one block, so a block decodes
with one reduction.

Zeros follow, up to the length of the longest upload that a device of the campaign has to send, and none where that is
reached: all devices' uploads have one length, which tells nobody who was asked what.
"""

from __future__ import annotations

import hmac
import itertools
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgpack

from ldp_protocols.campaign import Campaign
from ldp_protocols.document.questions import Question
from ldp_protocols.errors import DocumentError, LdpError
from ldp_protocols.exact import SYSTEM_COINS, Coins
from ldp_protocols.framing import ID_BYTES, WIRE_VERSION, packed

MEDIA_TYPE: Final = "application/vnd.ldp-bayes.reports+msgpack"
SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Report:
    """``question`` is its place in ``campaign.counted``: its index in the document, in a series window * questions +
    index; ``payload`` has the mechanism's fixed width.
    """

    question: int
    id: bytes
    payload: bytes


def report_id(secret: bytes, campaign: Campaign, question: Question) -> bytes:
    """The id of a device's report to ``question``. Raises LdpError for a secret that is none."""
    message = campaign.id.encode("ascii") + slot_bytes(campaign, question.group)
    return hmac.digest(check_secret(secret), message, "sha256")[:ID_BYTES]


def slot_bytes(campaign: Campaign, group: int) -> bytes:
    """The slot of a group's answer in this campaign, as it stands in keyed messages."""
    return (group if campaign.privacy.answers == "all" else 0).to_bytes(4, "little")


def make_secret(coins: Coins = SYSTEM_COINS) -> bytes:
    """A new device's secret: four words, little-endian. Coins other than the default are for tests and simulations."""
    return struct.pack("<4Q", *coins.words(4))


def check_secret(secret: bytes) -> bytes:
    """The secret, where it is one: 32 bytes, drawn once for a device. Raises LdpError otherwise."""
    if not isinstance(secret, bytes) or len(secret) != SECRET_BYTES:
        got = f"{len(secret)} bytes" if isinstance(secret, bytes) else type(secret).__name__
        raise LdpError("invalid-secret", f"a device secret is {SECRET_BYTES} random bytes, not {got}")
    return secret


@dataclass(frozen=True, slots=True)
class Block:
    """The reports of one upload to one question, ids and payloads concatenated in the same order."""

    question: int
    ids: bytes
    payloads: bytes

    @property
    def count(self) -> int:
        """Number of reports."""
        return len(self.ids) // ID_BYTES


def encode_upload(reports: Iterable[Report], campaign: Campaign) -> bytes:
    """The one encoding of reports, each question's in order. Raises DocumentError for none at all."""
    return encode_padded(reports, campaign.upload_bytes)


def encode_padded(reports: Iterable[Report], length: int) -> bytes:
    """The same, where all that is at hand of the campaign is its ``upload_bytes``."""
    reports = tuple(reports)
    if len(reports) == 1:  # what most devices send
        return packed([(reports[0].question, reports[0].id, reports[0].payload)], length)
    by_question: dict[int, list[Report]] = {}
    for report in reports:
        by_question.setdefault(report.question, []).append(report)
    if not by_question:
        raise _malformed("an upload holds at least one report")
    blocks = [
        (question, b"".join(r.id for r in members), b"".join(r.payload for r in members))
        for question, members in sorted(by_question.items())
    ]
    return packed(blocks, length)


def encode_blocks(blocks: Sequence[Block], campaign: Campaign) -> bytes:
    """The one encoding of blocks, which must be in increasing order of their questions."""
    return packed([(block.question, block.ids, block.payloads) for block in blocks], campaign.upload_bytes)


def decode_upload(data: bytes, campaign: Campaign) -> tuple[Block, ...]:
    """Blocks of an upload, framing and widths checked, contents not. Raises DocumentError, also for a second form."""
    # Lying lengths are refused before anything of that size is allocated.
    longest = max(3, len(campaign.counted))  # a block's members, or the blocks
    try:
        value = msgpack.unpackb(
            data, raw=False, strict_map_key=True, max_array_len=longest, max_ext_len=0, max_map_len=0, max_str_len=0
        )
    except msgpack.ExtraData as padded:
        value = padded.unpacked
    except Exception as error:  # msgpack raises many types; each means the same here.
        raise _malformed(f"not one msgpack value of this format ({type(error).__name__})") from None
    if not (type(value) is list and len(value) == 2 and value[0] == WIRE_VERSION and type(value[1]) is list):
        raise _malformed(f"an upload is [{WIRE_VERSION}, [block, ...]]")
    blocks = tuple(_read_block(block, campaign) for block in value[1])
    if not blocks:
        raise _malformed("an upload holds at least one block")
    if any(first.question >= second.question for first, second in itertools.pairwise(blocks)):
        raise _malformed("blocks must be in strictly increasing order of their questions")
    wanted = encode_blocks(blocks, campaign)
    if data != wanted:
        raise _malformed(f"not the one encoding: the shortest msgpack and zeros, {len(wanted)} bytes; not {len(data)}")
    return blocks


def _read_block(value: Any, campaign: Campaign) -> Block:
    if not (type(value) is list and [type(member) for member in value] == [int, bytes, bytes]):
        raise _malformed("a block is [question, ids, payloads]: an integer and two binaries")
    question, ids, payloads = value
    if not 0 <= question < len(campaign.counted):
        raise _malformed(f"question {question} does not exist; the campaign has {len(campaign.counted)}")
    if not ids or len(ids) % ID_BYTES:
        raise _malformed(f"question {question}: ids must be one or more times {ID_BYTES} bytes, not {len(ids)}")
    wanted = campaign.counted[question].mechanism.width * (len(ids) // ID_BYTES)
    if len(payloads) != wanted:
        raise _malformed(f"question {question}: payloads must be {wanted} bytes, not {len(payloads)}")
    return Block(question, ids, payloads)


def _malformed(problem: str) -> DocumentError:
    return DocumentError("malformed-upload", problem)
