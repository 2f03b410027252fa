"""A population that is asked over many windows at one loss for life: ways to spend it, and what each is worth.

Compared at the same claimed epsilon, for frequencies of :data:`CELLS` values in every window:

* *split*: every device answers in every window, each time with epsilon / T.
* *memoised*: every device draws a hash of the values into two cells once, and for each cell a lasting answer with
  epsilon / 2; in every window it reports the lasting answer to its value, randomised again so that a single report
  loses epsilon / 4. The claim is epsilon / 2 for each of the two cells; what it truly loses is
  :func:`memoised_loss`.
* *by lot*: every device answers once with epsilon, in a window drawn by lot; as it is, filtered (what is known of
  each window from those up to it) and smoothed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any, Final

import numpy as np
import pandas as pd

from ldp_aggregator.estimation.cells import Array, Cells
from ldp_aggregator.learning.series import smooth
from ldp_aggregator.mechanisms import analysis_of
from ldp_protocols.drafting import AUTO, make_discrete
from ldp_protocols.exact import exact_epsilon, exp_bounds, probability_down
from ldp_protocols.mechanisms import AnyMechanism
from ldp_protocols.mechanisms.pure import DirectEncoding
from ldp_simulations.columns import Integers

CELLS: Final = 8
FASHIONS: Final = 8
"""Those who change their value draw it from a fashion, a random distribution; so many follow each other in a life."""

SPLIT: Final = "split evenly"
SPLIT_SMOOTHED: Final = "split evenly, smoothed"
MEMOISED: Final = "memoised"
BY_LOT: Final = "by lot"
FILTERED: Final = "by lot, filtered"
SMOOTHED: Final = "by lot, smoothed"

STILL: Final = "still"
SLOW: Final = "slow"
FAST: Final = "fast"
JUMP: Final = "jump"
SEASONS: Final = "seasons"
CHANGES: Final[Mapping[str, float]] = {STILL: 0.0, SLOW: 0.5, FAST: 2.7, JUMP: 0.5, SEASONS: 0.5}
"""Times that a person's value is drawn anew in a life, on average; of ``jump``, beside the jump."""

_JUMPING: Final = 0.3
"""The share of people who change all at once, after five eighths of the windows."""
_SEASONAL: Final = 0.3
"""The share of people who follow the seasons, of which a life has two rounds, and hold one of two values."""


def lives(population: str, devices: int, windows: int, rng: np.random.Generator) -> Iterator[Integers]:
    """The value of every device in one window after the other. Raises KeyError for an unknown population."""
    change = 1 - math.exp(-CHANGES[population] / windows)
    values = rng.choice(CELLS, size=devices, p=rng.dirichlet(np.ones(CELLS)))
    fashion, seasonal = np.full(CELLS, 1 / CELLS), rng.random(devices) < _SEASONAL
    threshold = rng.random(devices)
    for window in range(windows):
        if window * FASHIONS // windows != (window - 1) * FASHIONS // windows:
            fashion = rng.dirichlet(np.ones(CELLS))
        changed = rng.random(devices) < change
        if population == JUMP and window == windows * 5 // 8:
            fashion = rng.dirichlet(np.ones(CELLS))
            changed |= rng.random(devices) < _JUMPING
        values[changed] = rng.choice(CELLS, size=int(changed.sum()), p=fashion)
        if population == SEASONS:
            warm = (1 + math.sin(4 * math.pi * window / windows)) / 2
            yield np.where(seasonal, threshold < warm, values)
        else:
            yield values.copy()


def run_series(
    population: str, windows: int, epsilons: Sequence[float], devices: int, seed: int
) -> list[dict[str, Any]]:
    """One row for every epsilon and way: the root mean squared error of a cell in the later three quarters of the
    windows, and the share of 95 % intervals that hold; the same seed gives the same rows.
    """
    rng = np.random.default_rng([seed, windows])
    lots = rng.integers(0, windows, size=devices)
    memos = [_Memo(epsilon, devices, rng) for epsilon in epsilons]
    held, asked, memoised = [], [], []
    for window, values in enumerate(lives(population, devices, windows, rng)):
        held.append(np.bincount(values, minlength=CELLS))
        asked.append(np.bincount(values[lots == window], minlength=CELLS))
        memoised.append([memo.estimate(values, rng) for memo in memos])
    truth, rows = np.stack(held) / devices, []
    everybody, answers = np.full(windows, np.inf), np.stack(asked).sum(axis=1).astype(np.float64)
    for place, epsilon in enumerate(epsilons):
        split = _estimated(_mechanism(epsilon, windows), np.stack(held), rng)
        by_lot = _estimated(_mechanism(epsilon, 1), np.stack(asked), rng)
        levels = smooth(*by_lot, answers)
        found: dict[str, Array | Cells] = {
            SPLIT: split[0],
            SPLIT_SMOOTHED: smooth(*split, everybody).smoothed,
            MEMOISED: np.stack([of_window[place] for of_window in memoised]),
            BY_LOT: by_lot[0],
            FILTERED: levels.filtered,
            SMOOTHED: levels.smoothed,
        }
        about = {"population": population, "windows": windows, "epsilon": epsilon, "seed": seed}
        rows += [
            {**about, "way": way, "loss": true_loss(way, epsilon, windows), **_judge(cells, truth, windows // 4)}
            for way, cells in found.items()
        ]
    return rows


def summarise(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Means over the runs, one row for every setting, in the order they were given."""
    groups = pd.DataFrame(list(rows)).groupby(["population", "windows", "epsilon", "way"], sort=False)
    means = groups[["loss", "error", "covered"]].mean()
    means.insert(2, "standard_error", groups["error"].sem())
    means["covered_error"] = groups["covered"].sem()
    means.insert(0, "runs", groups.size())
    return means.reset_index()


@lru_cache
def true_loss(way: str, epsilon: float, windows: int) -> float:
    """The loss of a device in its life, at the most; of memoised answers, at the least."""
    if way == MEMOISED:
        return memoised_loss(exact_epsilon(epsilon) / 2, exact_epsilon(epsilon) / 4, windows)
    parts = windows if way in (SPLIT, SPLIT_SMOOTHED) else 1
    return float(parts * _mechanism(epsilon, parts).loss())


def _mechanism(epsilon: float, parts: int) -> AnyMechanism:
    return make_discrete(AUTO, CELLS, exact_epsilon(epsilon) / parts)


def _estimated(mechanism: AnyMechanism, holders: Integers, rng: np.random.Generator) -> tuple[Array, Array]:
    """The estimates of each window's cells and the variances of their noise, as the server knows them."""
    analysis = analysis_of(mechanism)
    counts, answers = np.stack([analysis.tally(row, rng) for row in holders]), holders.sum(axis=1, keepdims=True)
    p, q, *_ = analysis.support
    with np.errstate(divide="ignore", invalid="ignore"):  # Nobody may have drawn a window.
        estimates = np.where(answers > 0, (counts / (answers * analysis.unit) - q) / (p - q), 1 / CELLS)
        return estimates, np.broadcast_to(mechanism.noise_variance(1 / CELLS) / answers, estimates.shape)


def _judge(found: Array | Cells, truth: Array, first: int) -> dict[str, float | None]:
    value = found.value if isinstance(found, Cells) else found
    error = float(np.sqrt(np.mean((value - truth)[first:] ** 2)))
    if not isinstance(found, Cells):
        return {"error": error, "covered": None}
    return {"error": error, "covered": float(np.mean(((found.low <= truth) & (truth <= found.high))[first:]))}


class _Memo:
    """The lasting coins of all devices of a memoised collection at one claimed loss."""

    def __init__(self, epsilon: float, devices: int, rng: np.random.Generator) -> None:
        self.memo, self.report = memoised_mechanisms(exact_epsilon(epsilon) / 2, exact_epsilon(epsilon) / 4)
        self.hashes = rng.integers(0, 2, size=(devices, CELLS), dtype=np.int8)
        self.lasting = np.stack([self._randomised(self.memo, np.full(devices, cell), rng) for cell in (0, 1)], axis=1)

    def _randomised(self, mechanism: DirectEncoding, items: Integers, rng: np.random.Generator) -> Integers:
        return analysis_of(mechanism).perturb(items, rng)[:, 0].astype(np.int64)

    def estimate(self, values: Integers, rng: np.random.Generator) -> Array:
        everybody = np.arange(len(values))
        sent = self._randomised(self.report, self.lasting[everybody, self.hashes[everybody, values]], rng)
        supported = (self.hashes == sent[:, None]).mean(axis=0)
        kept = float(self.memo.p * self.report.p + self.memo.q * self.report.q)
        return np.asarray((supported - 0.5) / (kept - 0.5))


def memoised_mechanisms(memo: Fraction, report: Fraction) -> tuple[DirectEncoding, DirectEncoding]:
    """The mechanisms of a lasting answer and of its reports over two cells: ``memo`` is what the lasting answer loses,
    ``report`` what a single report does, r = exp(report), and p2 = (r p1 - q1) / ((1 + r) (p1 - q1)).
    """
    lasting, (r, _) = DirectEncoding.make(2, memo), exp_bounds(report)
    p, q = lasting.p, lasting.q
    return lasting, DirectEncoding(2, probability_down((r * p - q) / ((1 + r) * (p - q))))


def memoised_loss(memo: Fraction, report: Fraction, reports: int) -> float:
    """The loss of memoised answers over two cells in so many reports, at the least: the largest log likelihood ratio of
    a constant and an alternating life.

    Exact: the mechanisms' own integers. Given the life, the law of the reports depends on how many of those at even and
    at odd places are 1.
    """
    lasting, again = memoised_mechanisms(memo, report)
    halves = (reports - reports // 2, reports // 2)

    def law(cell: int, ones: int, total: int) -> Fraction:
        """The probability of given reports on one lasting answer, with so many ones."""
        of_one = lasting.p if cell else lasting.q
        told = (again.p**ones * again.q ** (total - ones), again.q**ones * again.p ** (total - ones))
        return of_one * told[0] + (1 - of_one) * told[1]

    largest = Fraction(1)
    for first, second in product(range(halves[0] + 1), range(halves[1] + 1)):
        constant = law(0, first + second, reports)
        alternating = law(0, first, halves[0]) * law(1, second, halves[1])
        largest = max(largest, constant / alternating, alternating / constant)
    return math.log(largest.numerator) - math.log(largest.denominator)  # Both may be beyond doubles.
