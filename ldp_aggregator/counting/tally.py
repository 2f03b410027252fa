"""The tally: exact integer sums of reports. Any order, any sharding, any merge gives the same bits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.counting.decoding import cells, count, payload_rows, refusals
from protocols import Campaign
from protocols.wire import Block, decode_upload


class Tally:
    """Number of reports and summed counts of every question of a campaign.

    Attributes
    ----------
    n
        int64, one entry per question: reports counted.
    counts
        One int64 vector per question, of length :func:`ldp_aggregator.counting.decoding.cells`.
    """

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        self.n: NDArray[np.int64] = np.zeros(len(campaign.questions), dtype=np.int64)
        self.counts: list[NDArray[np.int64]] = [np.zeros(cells(q), dtype=np.int64) for q in campaign.questions]

    @classmethod
    def of_uploads(cls, campaign: Campaign, uploads: Iterable[bytes]) -> Tally:
        """The tally of serialised uploads, every report counted (no deduplication; that is the store's business).

        Raises UploadError on bytes that are no upload; reports that no device can have sent are left out.
        """
        tally = cls(campaign)
        for upload in uploads:
            for block in decode_upload(upload, campaign):
                tally.add_block(block)
        return tally

    def add(self, question: int, n: int, counts: NDArray[np.int64]) -> None:
        """Add ``n`` reports to question number ``question`` whose counts are already summed."""
        if counts.shape != self.counts[question].shape:
            raise ValueError(f"question {question} has {self.counts[question].size} counts, not {counts.size}")
        self.n[question] += n
        self.counts[question] += counts

    def add_block(self, block: Block) -> dict[int, str]:
        """Count a block of reports; returns position to code of those refused and left out."""
        question = self.campaign.questions[block.question]
        rows = payload_rows(question, block.payloads)
        refused = refusals(question, rows)
        if refused:
            rows = np.delete(rows, list(refused), axis=0)
        self.add(block.question, len(rows), count(question, rows))
        return refused

    def merge(self, other: Tally) -> None:
        """Add another tally of the same campaign into this one."""
        if other.campaign.id != self.campaign.id:
            raise ValueError(f"tallies of campaigns {self.campaign.id} and {other.campaign.id} do not add up")
        self.n += other.n
        for mine, theirs in zip(self.counts, other.counts, strict=True):
            mine += theirs

    def __add__(self, other: Tally) -> Tally:
        total = Tally(self.campaign)
        total.merge(self)
        total.merge(other)
        return total

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Tally)
            and other.campaign.id == self.campaign.id
            and np.array_equal(self.n, other.n)
            and all(np.array_equal(a, b) for a, b in zip(self.counts, other.counts, strict=True))
        )

    __hash__ = None  # type: ignore[assignment]  # Mutable.

    def __repr__(self) -> str:
        return f"Tally(campaign={self.campaign.id!r}, reports={int(self.n.sum())})"


def devices_counted(campaign: Campaign, counts: Sequence[int]) -> int:
    """The crowd behind the numbers of reports to each question; with ``answers: "all"`` that of the smallest group."""
    of_group = dict.fromkeys((question.group for question in campaign.questions), 0)
    for question, reports in zip(campaign.questions, counts, strict=True):
        of_group[question.group] += int(reports)
    return min(of_group.values()) if campaign.privacy.answers == "all" else sum(of_group.values())
