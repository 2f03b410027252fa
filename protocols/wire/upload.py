"""The wire format of an upload: canonical msgpack, exactly one valid encoding.

``[1, [[question, ids, payloads], ...]]``: questions strictly increasing, ``ids`` 16 n bytes, ``payloads`` width n
bytes, n >= 1. A device sends one block with n = 1; a relay sends many reports in one block, so a block decodes with
one reduction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import msgpack

from protocols.errors import UploadError
from protocols.wire.reports import ID_BYTES, Report

MEDIA_TYPE: Final = "application/vnd.ldp-bayes.reports+msgpack"
WIRE_VERSION: Final = 1


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
    """The one encoding of these reports; reports to the same question keep their order.

    Raises UploadError for none at all.
    """
    reports = tuple(reports)
    if len(reports) == 1:  # what most devices send
        return _packed([[reports[0].question, reports[0].id, reports[0].payload]])
    by_question: dict[int, list[Report]] = {}
    for report in reports:
        by_question.setdefault(report.question, []).append(report)
    if not by_question:
        raise UploadError("an upload holds at least one report")
    return encode_blocks(
        [
            Block(question, b"".join(r.id for r in members), b"".join(r.payload for r in members))
            for question, members in sorted(by_question.items())
        ]
    )


def encode_blocks(blocks: Sequence[Block]) -> bytes:
    """The one encoding of blocks, which must be in increasing order of their questions."""
    return _packed([[block.question, block.ids, block.payloads] for block in blocks])


def _packed(body: list[list[int | bytes]]) -> bytes:
    packed: bytes = msgpack.packb([WIRE_VERSION, body], use_bin_type=True)
    return packed
