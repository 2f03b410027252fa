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
from dataclasses import dataclass
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
WAYS: Final = (SPLIT, SPLIT_SMOOTHED, MEMOISED, BY_LOT, FILTERED, SMOOTHED)

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


@dataclass(frozen=True)
class Times:
    """The motion of a population: the values' shares at first; for each window the chance that a person changes and the
    fashion of those who do; and how warm it is, for the share of people who follow the seasons.
    """

    shares: Array
    changing: Array
    fashions: Array
    seasonal: float
    warm: Array

    @classmethod
    def draw(cls, population: str, windows: int, rng: np.random.Generator) -> Times:
        """The times of ``population``. Raises KeyError for an unknown one."""
        changing = np.full(windows, 1 - math.exp(-CHANGES[population] / windows))
        places, drawn = np.arange(windows), rng.dirichlet(np.ones(CELLS), size=2 + FASHIONS)
        which = places * FASHIONS // windows
        if population == JUMP:
            jump = windows * 5 // 8
            changing[jump] = 1 - (1 - changing[jump]) * (1 - _JUMPING)
            which = np.where((places >= jump) & (which == which[jump]), FASHIONS, which)
        warm = (1 + np.sin(4 * np.pi * places / windows)) / 2
        return cls(drawn[-1], changing, drawn[which], _SEASONAL if population == SEASONS else 0.0, warm)

    def lives(self, kinds: Integers, rng: np.random.Generator) -> Iterator[Integers]:
        """The people of each kind that hold each value, shape (..., CELLS), in one window after the other; ``kinds``
        has the people of each kind.

        Drawn for people who are alike together, so that a billion cost what a thousand do. Of who follows the seasons
        it is known between which temperatures the value changes.
        """
        edges = np.unique(self.warm)
        between = np.diff([0.0, *edges, 1.0]) * self.seasonal
        drawn = rng.multinomial(kinds, [*(1 - self.seasonal) * self.shares, *between])
        counts, seasonal = drawn[..., :CELLS], drawn[..., CELLS:]
        for changing, fashion, warm in zip(self.changing, self.fashions, self.warm, strict=True):
            changed = rng.binomial(counts, changing)
            counts = counts - changed + rng.multinomial(changed.sum(axis=-1), fashion)
            seen, turned = counts.copy(), seasonal[..., : np.searchsorted(edges, warm) + 1].sum(axis=-1)
            seen[..., 1] += turned
            seen[..., 0] += seasonal.sum(axis=-1) - turned
            yield seen


def run_series(
    population: str, windows: int, epsilons: Sequence[float], devices: int, seed: int
) -> list[dict[str, Any]]:
    """One row for every epsilon and way: the root mean squared error of a cell in the later three quarters of the
    windows, and the share of 95 % intervals that hold; the same seed gives the same rows.

    The ways of a run share the times; those that keep something on a device have people of their own.
    """
    rng = np.random.default_rng([seed, windows])
    times = Times.draw(population, windows, rng)
    lots = rng.multinomial(devices, np.full(windows, 1 / windows))
    lives = np.stack(list(times.lives(lots, rng)))
    held, asked, rows = lives.sum(axis=1), lives.diagonal().T, []
    everybody, answers = np.full(windows, np.inf), lots.astype(np.float64)
    for epsilon in epsilons:
        split = _estimated(_mechanism(epsilon, windows), held, rng)
        by_lot = _estimated(_mechanism(epsilon, 1), asked, rng)
        levels = smooth(*by_lot, answers)
        found: dict[str, Array | Cells] = {
            SPLIT: split[0],
            SPLIT_SMOOTHED: smooth(*split, everybody).smoothed,
            BY_LOT: by_lot[0],
            FILTERED: levels.filtered,
            SMOOTHED: levels.smoothed,
        }
        judged = {way: _judge(cells, held / devices, windows // 4) for way, cells in found.items()}
        judged[MEMOISED] = _judge(*_memoised(epsilon, times, devices, rng), windows // 4)
        about = {"population": population, "windows": windows, "epsilon": epsilon, "seed": seed}
        rows += [{**about, "way": way, "loss": true_loss(way, epsilon, windows), **judged[way]} for way in WAYS]
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


def _memoised(epsilon: float, times: Times, devices: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Estimated and true shares of each window; people are alike who share the hash and both lasting answers."""
    memo, report = memoised_mechanisms(exact_epsilon(epsilon) / 2, exact_epsilon(epsilon) / 4)
    hashes = np.array(list(product((0, 1), repeat=CELLS)))
    p, q = float(memo.p), float(memo.q)
    kinds = rng.multinomial(devices, np.tile(np.outer([p, q], [q, p]).ravel() / len(hashes), len(hashes)))
    first, second = np.array(list(product((0, 1), repeat=2))).T  # The lasting answers to the cells 0 and 1.
    lasting = np.where(hashes[:, None, :] == 1, second[:, None], first[:, None])
    probability = p * float(report.p) + q * float(report.q)
    estimates, truth = [], []
    for value in times.lives(kinds.reshape(len(hashes), 4), rng):
        of_one, of_hash = (value * lasting).sum(axis=(1, 2)), value.sum(axis=(1, 2))
        ones = rng.binomial(of_one, float(report.p)) + rng.binomial(of_hash - of_one, float(report.q))
        supported = (np.where(hashes == 1, ones[:, None], (of_hash - ones)[:, None])).sum(axis=0) / devices
        estimates.append((supported - 0.5) / (probability - 0.5))
        truth.append(value.sum(axis=(0, 1)) / devices)
    return np.stack(estimates), np.stack(truth)


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
        likelihoods = (again.p**ones * again.q ** (total - ones), again.q**ones * again.p ** (total - ones))
        return of_one * likelihoods[0] + (1 - of_one) * likelihoods[1]

    largest = Fraction(1)
    for first, second in product(range(halves[0] + 1), range(halves[1] + 1)):
        constant = law(0, first + second, reports)
        alternating = law(0, first, halves[0]) * law(1, second, halves[1])
        largest = max(largest, constant / alternating, alternating / constant)
    return math.log(largest.numerator) - math.log(largest.denominator)  # Both may be beyond doubles.
