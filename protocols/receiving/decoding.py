"""The strict reading of an upload: exactly one encoding of its content is valid."""

from __future__ import annotations

import itertools
from typing import Any, Final

import msgpack

from protocols.document.campaign import Campaign
from protocols.errors import UploadError
from protocols.wire.reports import ID_BYTES
from protocols.wire.upload import WIRE_VERSION, Block, encode_blocks

_BLOCK_MEMBERS: Final = 3


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
