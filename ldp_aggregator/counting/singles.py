"""Uploads of one report each, which is what most devices send, read together.

The one encoding of such an upload to a question is constant but for id and payload, so its first bytes name the
question, and a comparison of the rest of the constant bytes with what they must be says whether it is that encoding.
What it does not recognise may still be a sound upload: :func:`protocols.decode_upload` decides, here as everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.counting.sheets import MOST_LAYOUTS, ById, starts_of
from protocols import Campaign, Report, encode_upload
from protocols.wire.reports import ID_BYTES
from protocols.wire.upload import Block

_KEY_BYTES: Final = 7
"""Enough to name a question: the frame, and the question as msgpack's shortest integer, of up to three bytes."""


@dataclass(frozen=True)
class Singles:
    """What was recognised among some uploads: ``blocks`` in increasing order of their questions, the upload of each of
    their reports in ``order``, and the uploads that were not recognised in ``others``; uploads by their place.
    """

    blocks: tuple[Block, ...]
    order: list[int]
    others: list[int]


@dataclass(frozen=True, eq=False)
class _Frames:
    """For every question what its uploads look like: how long they are, where the id and the payload begin, which bytes
    of the first ``reach`` are constant, and what those are.
    """

    questions: dict[bytes, int]
    lengths: NDArray[np.int64]
    ids: list[int]
    payloads: list[int]
    constants: NDArray[np.uint8]
    masks: NDArray[np.uint8]

    @property
    def reach(self) -> int:
        return int(self.masks.shape[1])


def read_singles(campaign: Campaign, uploads: Sequence[bytes]) -> Singles:
    """Recognise uploads of one report in the one encoding that is valid."""
    frames = _frames(ById(campaign))
    name = frames.questions.get
    questions = np.array([name(upload[:_KEY_BYTES], -1) for upload in uploads], dtype=np.int64)
    lengths = np.array([len(upload) for upload in uploads], dtype=np.int64)
    # Zeros behind the last one, which may be shorter than what is looked at.
    text = np.frombuffer(b"".join(uploads) + bytes(frames.reach), dtype=np.uint8)
    starts = np.cumsum(lengths) - lengths
    beginnings = text[starts[:, None] + np.arange(frames.reach)]
    # Question -1 is compared with the last one; whatever comes of it does not count.
    differs = ((beginnings ^ frames.constants[questions]) & frames.masks[questions]).any(axis=1)
    sound = (questions >= 0) & (lengths == frames.lengths[questions]) & ~differs
    places = np.flatnonzero(sound)
    places = places[np.argsort(questions[places], kind="stable")]
    order = places.tolist()
    return Singles(_blocks(frames, uploads, order, questions[places]), order, np.flatnonzero(~sound).tolist())


def _blocks(
    frames: _Frames, uploads: Sequence[bytes], order: list[int], questions: NDArray[np.int64]
) -> tuple[Block, ...]:
    starts = starts_of(questions)
    ends = np.append(starts[1:], len(order))[: len(starts)]
    bounds = zip(questions[starts].tolist(), starts.tolist(), ends.tolist(), strict=True)
    blocks = []
    for question, first, last in bounds:
        at, behind = frames.ids[question], frames.payloads[question]
        members = [uploads[place] for place in order[first:last]]
        ids = b"".join([upload[at : at + ID_BYTES] for upload in members])
        blocks.append(Block(question, ids, b"".join([upload[behind:] for upload in members])))
    return tuple(blocks)


@lru_cache(maxsize=MOST_LAYOUTS)
def _frames(key: ById) -> _Frames:
    """Read off uploads that differ in every bit of id and payload."""
    width = [question.mechanism.width for question in key.campaign.questions]
    heads, ids, payloads = [], [], []
    for question, size in enumerate(width):
        low, high = (encode_upload([Report(question, bytes([b]) * ID_BYTES, bytes([b]) * size)]) for b in (0, 255))
        payload = len(low) - size
        at = next(place for place, (a, b) in enumerate(zip(low, high, strict=True)) if a != b)
        heads.append(low[:payload])
        ids.append(at)
        payloads.append(payload)
    reach = max(map(len, heads))
    constants = np.zeros((len(heads), reach), dtype=np.uint8)
    masks = np.zeros_like(constants)
    for question, head in enumerate(heads):
        constants[question, : len(head)] = np.frombuffer(head, dtype=np.uint8)
        masks[question, : len(head)] = 255
        masks[question, ids[question] : ids[question] + ID_BYTES] = 0
    return _Frames(
        questions={head[:_KEY_BYTES]: question for question, head in enumerate(heads)},
        lengths=np.array(payloads, dtype=np.int64) + np.array(width, dtype=np.int64),
        ids=ids,
        payloads=payloads,
        constants=constants,
        masks=masks,
    )
