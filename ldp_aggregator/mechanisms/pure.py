"""Analysis that all pure protocols share: a cell is supported or not, and reports add up to support counts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TypeVar

from ldp_aggregator.mechanisms.analysis import Analysis, Integers, Support
from protocols.mechanisms import PureMechanism

P = TypeVar("P", bound=PureMechanism)


class PureFacts(Analysis[P]):
    """A mechanism whose reports support a set of indices."""

    @cached_property
    def support(self) -> Support:
        return Support(float(self.mechanism.p), float(self.mechanism.q), *map(float, self.mechanism.joint_support))

    def reach(self, members: int) -> float:
        """The cells among ``members`` that one report may support and another not, over p - q: here any number."""
        return members / self.gain

    def impossible(self, n: int, counts: Integers) -> Iterator[str]:
        if not all((counts >= 0) & (counts <= n)):
            yield "a cell is counted more often than there are reports, or less than never"
