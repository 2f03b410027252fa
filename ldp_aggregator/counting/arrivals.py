"""The ways on which the reports of a tally came, which has to be known beside their sums."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Numbers of one campaign's counted reports.

    reports
        How many there are.
    vouched
        Those that came in a batch that a relay vouched for, less those that were then seen outside of one.
    least_batch
        The smallest such batch: devices, less the reports of an upload that hid nobody because they were known before
        or refused. None where there was none.
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
        """Reports, at least, that were seen outside of every vouched batch. Where it is 0 there are none."""
        return self.reports - self.vouched

    @property
    def twice(self) -> int:
        """Reports, at most, that are in the sums twice."""
        return self.overlap + self.unchecked
