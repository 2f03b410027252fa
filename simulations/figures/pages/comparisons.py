"""From a table of means to sentences: who is higher, how often, and by more than the noise of the means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

Z_95: Final = 1.96
CLEAR: Final = 3.0
"""Standard errors of a difference that chance exceeds once in 370 comparisons."""

HOW: Final = (
    f"*Clearly* means by more than {CLEAR:g} standard errors of the difference. *Confirmed* says that the first is "
    "clearly higher somewhere and clearly lower nowhere, *contradicted* the opposite, *mixed* that both occur, "
    "*undecided* that neither does."
)


def verdict(won: int, of: int) -> str:
    """The word for a sentence that holds in ``won`` of so many cases: more than four fifths, fewer than half."""
    return "confirmed" if won > 0.8 * of else "contradicted" if won < 0.5 * of else "mixed"


@dataclass(frozen=True)
class Comparison:
    """Differences of two curves, point by point; ``noise`` is the standard error of each.

    It takes the two means for independent. They share their splits, which makes it too large rather than too small.
    """

    differences: Sequence[float]
    noise: Sequence[float]

    @property
    def clearly_higher(self) -> int:
        """Points at which the first is higher by more than the noise explains."""
        return sum(d > CLEAR * s for d, s in zip(self.differences, self.noise, strict=True))

    @property
    def clearly_lower(self) -> int:
        """Points at which it is lower by more than that."""
        return sum(-d > CLEAR * s for d, s in zip(self.differences, self.noise, strict=True))

    @property
    def word(self) -> str:
        """The verdict on *the first is higher*, as :data:`HOW` says."""
        if self.clearly_higher and self.clearly_lower:
            return "mixed"
        return "confirmed" if self.clearly_higher else "contradicted" if self.clearly_lower else "undecided"

    def __str__(self) -> str:
        return (
            f"{self.word}, clearly higher in {self.clearly_higher} and clearly lower in {self.clearly_lower} of "
            f"{len(self.differences)}, mean {np.mean(self.differences):+.3f}"
        )


def compare(first: pd.DataFrame, second: pd.DataFrame, on: Sequence[str]) -> Comparison:
    """The accuracies of two selections of a table, where they have the same values of the ``on`` columns."""
    both = first.merge(second, on=list(on), suffixes=("", "_second"))
    noise = np.hypot(both["standard_error"], both["standard_error_second"])
    return Comparison((both["accuracy"] - both["accuracy_second"]).tolist(), noise.tolist())


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The first column is text, the others are numbers."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def listed(names: Sequence[str]) -> str:
    """One, two and three."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
