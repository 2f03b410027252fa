"""Parts of a tally: what one commit adds, as bytes. The tally of a campaign is the sum of its parts.

A part is little-endian int64: for every question it touches the question's index, n, and the counts vector. Appending
a part never waits for another writer; :data:`COMPACT_AT` parts are replaced by their sum.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.counting.rows import cells
from ldp_aggregator.counting.tally import Tally
from protocols import Campaign

COMPACT_AT: Final = 64
"""Parts of one campaign after which a writer adds them up. Parts cost the reader, compaction costs the writer."""

Sums = dict[int, tuple[int, NDArray[np.int64]]]
"""Question index to (n, counts)."""


def encode_part(sums: Sums) -> bytes:
    """Questions in increasing order."""
    vectors = [np.concatenate(([question, n], counts)).astype("<i8") for question, (n, counts) in sorted(sums.items())]
    return b"".join(vector.tobytes() for vector in vectors)


def add_part(tally: Tally, part: bytes) -> None:
    """Add one part. Raises ValueError for bytes that are no part of this campaign."""
    values = np.frombuffer(part, dtype="<i8")
    position = 0
    while position < len(values):
        question = int(values[position])
        if not 0 <= question < len(tally.campaign.questions):
            raise ValueError(f"a tally part names question {question}, which does not exist")
        end = position + 2 + cells(tally.campaign.questions[question])
        if end > len(values):
            raise ValueError(f"a tally part ends within question {question}")
        tally.add(question, int(values[position + 1]), values[position + 2 : end].astype(np.int64))
        position = end


def tally_of_parts(campaign: Campaign, parts: Iterable[bytes]) -> Tally:
    """The sum of all parts."""
    tally = Tally(campaign)
    for part in parts:
        add_part(tally, part)
    return tally


def part_of_tally(tally: Tally) -> bytes:
    """A tally as one part; questions without reports are left out."""
    return encode_part({q: (int(n), tally.counts[q]) for q, n in enumerate(tally.n) if n})
