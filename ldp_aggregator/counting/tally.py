"""The tally of a campaign: exact integer sums of what was counted. Any order, any sharding, any merge gives the same
bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.counting.payloads import cells, count, payload_rows, refusals
from ldp_protocols import Campaign
from ldp_protocols.wire import Block, decode_upload


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Numbers of one campaign's counted reports.

    reports
        How many there are.
    vouched
        Those that came in a batch that a relay vouched for, less those that were then seen outside of one.
    least_batch
        The smallest such batch: devices, less the reports of an upload that hid nobody because they were known before
        or refused. None if there was none.
    overlap
        Reports that are in the sums twice: both of two merged stores had counted them.
    unchecked
        Reports that may be, beyond ``overlap``: when they were merged, one store's ids were gone.
    """

    reports: int = 0
    vouched: int = 0
    least_batch: int | None = None
    overlap: int = 0
    unchecked: int = 0

    @property
    def otherwise(self) -> int:
        """Reports, at least, that were seen outside of every vouched batch. If it is 0 there are none."""
        return self.reports - self.vouched

    @property
    def twice(self) -> int:
        """Reports, at most, that are in the sums twice."""
        return self.overlap + self.unchecked


class Tally:
    """Number of reports and summed counts of every question of a campaign, in a series of each of its windows.

    Attributes
    ----------
    n
        int64, one entry for each of ``campaign.counted``: reports counted.
    counts
        One int64 vector for each, of length :func:`ldp_aggregator.counting.payloads.cells`.
    """

    def __init__(
        self, campaign: Campaign, n: NDArray[np.int64] | None = None, counts: list[NDArray[np.int64]] | None = None
    ) -> None:
        """Tally of ``n`` and ``counts``, by default of no report."""
        self.campaign = campaign
        self.n = np.zeros(len(campaign.counted), dtype=np.int64) if n is None else n
        self.counts = [np.zeros(cells(q), dtype=np.int64) for q in campaign.counted] if counts is None else counts

    @classmethod
    def of_uploads(cls, campaign: Campaign, uploads: Iterable[bytes]) -> Tally:
        """The tally of serialised uploads: every report counts (deduplication is the store's) but those that no device
        can have sent. Raises DocumentError on bytes that are no upload.
        """
        tally = cls(campaign)
        for upload in uploads:
            for block in decode_upload(upload, campaign):
                tally.add_block(block)
        return tally

    @classmethod
    def of_windows(cls, campaign: Campaign, windows: Sequence[Tally]) -> Tally:
        """The tally of a series from those of its windows; the inverse of :meth:`window`."""
        counts = [counts for one in windows for counts in one.counts]
        return cls(campaign, np.concatenate([one.n for one in windows]), counts)

    def window(self, window: int) -> Tally:
        """The tally of one window of a series, as of a campaign that has no others; it shares the arrays."""
        questions = len(self.campaign.questions)
        its = slice(window * questions, (window + 1) * questions)
        return Tally(self.campaign.one_window, self.n[its], self.counts[its])

    @property
    def windows(self) -> tuple[Tally, ...]:
        """The tally of every window; itself alone where the campaign has none."""
        number = len(self.n) // len(self.campaign.questions)
        return (self,) if number == 1 else tuple(map(self.window, range(number)))

    def pooled(self) -> Tally:
        """The sum over all windows; itself where the campaign has none."""
        windows = self.windows
        if len(windows) == 1:
            return self
        total = Tally(self.campaign.one_window)
        for one in windows:
            total.merge(one)
        return total

    def add(self, question: int, n: int, counts: NDArray[np.int64]) -> None:
        """Add ``n`` reports to question number ``question`` whose counts are already summed."""
        if counts.shape != self.counts[question].shape:
            raise ValueError(f"question {question} has {self.counts[question].size} counts, not {counts.size}")
        self.n[question] += n
        self.counts[question] += counts

    def add_block(self, block: Block) -> dict[int, str]:
        """Count a block of reports; returns position to code of those refused and left out."""
        question = self.campaign.counted[block.question]
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
