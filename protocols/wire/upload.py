"""The wire format of an upload: canonical msgpack, exactly one valid encoding.

``[1, [[question, ids, payloads], ...]]``: questions strictly increasing, ``ids`` 16 n bytes, ``payloads`` width n
bytes, n >= 1. A device sends one block with n = 1; a relay sends many reports in one block, so a block decodes with
one reduction.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgpack

from protocols.document.campaign import Campaign
from protocols.errors import UploadError
from protocols.wire.reports import ID_BYTES, Report

MEDIA_TYPE: Final = "application/vnd.ldp-bayes.reports+msgpack"
WIRE_VERSION: Final = 1

_BLOCK_MEMBERS: Final = 3


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


def encode_upload(reports: Iterable[Report]) -> bytes:
    """The one encoding of these reports; reports to the same question keep their order. At least one report."""
    by_question: dict[int, list[Report]] = {}
    for report in reports:
        by_question.setdefault(report.question, []).append(report)
    if not by_question:
        raise ValueError("an upload holds at least one report")
    return encode_blocks(
        [
            Block(question, b"".join(r.id for r in members), b"".join(r.payload for r in members))
            for question, members in sorted(by_question.items())
        ]
    )


def encode_blocks(blocks: Sequence[Block]) -> bytes:
    """The one encoding of blocks, which must be in increasing order of their questions."""
    body = [[block.question, block.ids, block.payloads] for block in blocks]
    packed: bytes = msgpack.packb([WIRE_VERSION, body], use_bin_type=True)
    return packed


def decode_upload(data: bytes, campaign: Campaign) -> tuple[Block, ...]:
    """The blocks of an upload to ``campaign``, framing and widths checked; payload contents are checked when counted.

    Raises UploadError for everything else, including a second encoding of the same blocks.
    """
    # Lying lengths are refused before anything of that size is allocated.
    longest = max(_BLOCK_MEMBERS, len(campaign.questions))
    try:
        value = msgpack.unpackb(
            data,
            raw=False,
            strict_map_key=True,
            max_array_len=longest,
            max_ext_len=0,
            max_map_len=0,
            max_str_len=0,
        )
    except Exception as error:  # msgpack raises many types; each means the same here.
        raise UploadError(f"not one msgpack value of this format ({type(error).__name__})") from None
    if not (type(value) is list and len(value) == 2 and value[0] == WIRE_VERSION and type(value[1]) is list):
        raise UploadError(f"an upload is [{WIRE_VERSION}, [block, ...]]")
    blocks = tuple(_read_block(block, campaign) for block in value[1])
    if not blocks:
        raise UploadError("an upload holds at least one block")
    if any(first.question >= second.question for first, second in itertools.pairwise(blocks)):
        raise UploadError("blocks must be in strictly increasing order of their questions")
    if encode_blocks(blocks) != data:
        raise UploadError("not the shortest msgpack encoding of its content; exactly one encoding is valid")
    return blocks


def _read_block(value: Any, campaign: Campaign) -> Block:
    if not (type(value) is list and [type(member) for member in value] == [int, bytes, bytes]):
        raise UploadError("a block is [question, ids, payloads]: an integer and two binaries")
    question, ids, payloads = value
    if not 0 <= question < len(campaign.questions):
        raise UploadError(f"question {question} does not exist; the campaign has {len(campaign.questions)}")
    if not ids or len(ids) % ID_BYTES:
        raise UploadError(f"question {question}: ids must be one or more times {ID_BYTES} bytes, not {len(ids)}")
    wanted = campaign.questions[question].mechanism.width * (len(ids) // ID_BYTES)
    if len(payloads) != wanted:
        raise UploadError(f"question {question}: payloads must be {wanted} bytes, not {len(payloads)}")
    return Block(question, ids, payloads)
