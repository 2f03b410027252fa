"""Uploads cut into the parts that each database takes, and the answers put together again. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.store.contract import UNAVAILABLE, Outcome, Submission
from protocols.wire.reports import ID_BYTES
from protocols.wire.upload import Block

Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Part:
    """Reports of upload number ``upload``, and where in it each of them stands."""

    upload: int
    submission: Submission
    positions: Positions


def whole(upload: int, submission: Submission) -> Part:
    """An upload as one part."""
    return Part(upload, submission, np.arange(submission.reports))


def divide(part: Part, places: NDArray[np.int16]) -> Iterator[tuple[int, Part]]:
    """By the database of each report's id; ``places`` has that of each first byte."""
    submission = part.submission
    if submission.reports == 1:
        yield int(places[submission.blocks[0].ids[0]]), part
        return
    wanted = np.concatenate([places[_rows(block.ids, ID_BYTES)[:, 0]] for block in submission.blocks])
    for shard in np.unique(wanted).tolist():
        chosen = wanted == shard
        if chosen.all():
            yield shard, part
        else:
            blocks = tuple(_chosen(submission.blocks, chosen))
            yield (
                shard,
                Part(part.upload, Submission(submission.campaign, blocks, submission.batch), part.positions[chosen]),
            )


def _chosen(blocks: Sequence[Block], chosen: NDArray[np.bool_]) -> Iterator[Block]:
    start = 0
    for block in blocks:
        mine = chosen[start : start + block.count]
        start += block.count
        if mine.any():
            width = len(block.payloads) // block.count
            ids, payloads = _rows(block.ids, ID_BYTES)[mine], _rows(block.payloads, width)[mine]
            yield Block(block.question, ids.tobytes(), payloads.tobytes())


def join(answers: Iterable[tuple[Part, Outcome]]) -> Outcome:
    """The answer to an upload, from those to its parts.

    Where a database did not answer, the upload has to come again, and ``absent`` has the places of its reports there.
    Where one refused what another one counted (the campaign was closed in between), those reports are rejected.
    """
    answers = list(answers)
    refused = [outcome.refused for _, outcome in answers if outcome.refused is not None]
    again = UNAVAILABLE in refused
    if len(refused) == len(answers):
        return Outcome(refused=UNAVAILABLE if again else refused[0])
    rejected: dict[int, tuple[bytes, str]] = {}
    absent: list[int] = []
    for part, outcome in answers:
        if outcome.refused == UNAVAILABLE:
            absent += part.positions.tolist()
        elif outcome.refused is not None:
            ids = b"".join(block.ids for block in part.submission.blocks)
            for row, place in enumerate(part.positions.tolist()):
                rejected[place] = (ids[ID_BYTES * row : ID_BYTES * (row + 1)], outcome.refused)
        for row, code in zip(outcome.places, outcome.rejected, strict=True):
            rejected[int(part.positions[row])] = code
    return Outcome(
        sum(outcome.counted for _, outcome in answers),
        sum(outcome.duplicates for _, outcome in answers),
        tuple(rejected[place] for place in sorted(rejected)),
        UNAVAILABLE if again else None,
        places=tuple(sorted(rejected)),
        absent=tuple(sorted(absent)),
    )


def overstated_crowd(submission: Submission, answers: Iterable[tuple[Part, Outcome]]) -> int | None:
    """The devices that an upload's reports were mixed with, where its parts recorded more: each took off only what was
    known before in its own database. None where they are right.
    """
    counted = [(part.submission.reports, outcome.counted) for part, outcome in answers if outcome.counted]
    if submission.batch is None or not counted:
        return None
    recorded = min(max(0, submission.batch - (reports - new)) for reports, new in counted)
    crowd = max(0, submission.batch - (submission.reports - sum(new for _, new in counted)))
    return crowd if crowd < recorded else None


def _rows(text: bytes, width: int) -> NDArray[np.uint8]:
    return np.frombuffer(text, dtype=np.uint8).reshape(-1, width)
