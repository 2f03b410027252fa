"""The truth about few shuffled devices, by enumeration: all neighbouring data sets, all multisets of reports."""

import math
from functools import reduce
from itertools import combinations_with_replacement, product

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.mechanisms import analysis_of
from protocols.mechanisms import LaplaceVector, SummingHistogramEncoding

Array = NDArray[np.float64]


def law_of(mechanism):
    """P(report | item), shape (items, reports), from the definition; noise beyond the items' range is one report."""
    if isinstance(mechanism, LaplaceVector):
        steps = 1 << mechanism.grid
        means = [
            tuple(value if cell == own else 0 for cell in range(mechanism.domain_size))
            for own in range(mechanism.domain_size)
            for value in range(-steps, steps + 1)
        ]
        return _noisy(means, float(mechanism.scale), -steps, steps)
    if isinstance(mechanism, SummingHistogramEncoding):
        d = mechanism.domain_size
        return _noisy([tuple(int(cell == own) for cell in range(d)) for own in range(d)], float(mechanism.scale), -1, 2)
    return np.array([[float(p) for p in law] for law in analysis_of(mechanism).laws()]).T


def mixture(parts):
    """Records with an item for every question; a report is the question drawn and its answer."""
    records = product(*(range(len(law)) for _, law in parts))
    return np.array(
        [
            np.concatenate([float(share) * law[item] for (share, law), item in zip(parts, record, strict=True)])
            for record in records
        ]
    )


def worst_delta(law, devices, epsilons):
    """The largest delta at each epsilon over all pairs of data sets of so many devices that differ in one."""
    worst = np.zeros(len(epsilons))
    for laws_of_all in shuffled_laws(law, devices):
        for epsilon_at, epsilon in enumerate(epsilons):
            excess = laws_of_all[:, None, :] - math.exp(epsilon) * laws_of_all[None, :, :]
            worst[epsilon_at] = max(worst[epsilon_at], float(np.maximum(excess, 0).sum(axis=2).max()))
    return worst


def shuffled_laws(law, devices):
    """For every multiset of the other devices' items: the laws of the multiset of reports, one row for each item."""
    items, reports = law.shape
    steps = [_steps(reports, number) for number in range(devices)]
    for others in combinations_with_replacement(range(items), devices - 1):
        here = np.ones(1)
        for step, item in zip(steps, others, strict=False):
            here = _one_more(here, law[item], step)
        yield np.array([_one_more(here, one, steps[-1]) for one in law])


def _one_more(here, law, step):
    return np.bincount(step.ravel(), (here[:, None] * law[None, :]).ravel())


def _steps(reports, number):
    """Which multiset of ``number + 1`` reports each of ``number`` becomes with one more report."""
    larger = {one: at for at, one in enumerate(combinations_with_replacement(range(reports), number + 1))}
    smaller = combinations_with_replacement(range(reports), number)
    return np.array([[larger[tuple(sorted((*one, report)))] for report in range(reports)] for one in smaller])


def _noisy(means, scale, low, high):
    """Products over the cells; a cell's report is its number, at most ``high`` and at least ``low``."""
    a = math.exp(-1 / scale)

    def cell_law(mean):
        inner = [(1 - a) / (1 + a) * a ** abs(z - mean) for z in range(low + 1, high)]
        return np.array([a ** (mean - low) / (1 + a), *inner, a ** (high - mean) / (1 + a)])

    return np.array([reduce(np.kron, map(cell_law, mean)) for mean in means])
