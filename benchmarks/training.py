"""How long training takes: Naive Bayes from 200,000 reports about 42 features of three values and three classes.

    python benchmarks/training.py [--reports N] [--features F] [--repeats R] [--json]

Everything that `train` does by default is in the time: estimates, what is believed, what liars are found to move (for
which it learns again for each class), the predicted accuracy, the guarantee of who sees the model alone; once for
features called complete, once for features that may be missing. Every time there is one report more, so that the
guarantee is not one found before; then the same reports are trained on again. Beside it, in the same run,
scikit-learn's CategoricalNB on as many records, which it reads in clear, and the estimates alone, which training cannot
do without. Promised: training takes below 50 ms of processor time on a quiet machine. The exit code is 1 where that is
broken. Every figure is the median of the repeats, which take turns, with the least in brackets: the median of a machine
that does other work tells of that work.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.naive_bayes import CategoricalNB

from ldp_aggregator import Tally, estimate
from ldp_aggregator.learning.training import train
from ldp_aggregator.mechanisms import analysis_of
from ldp_protocols import Campaign

REPORTS = 200_000
FEATURES = 42
VALUES, CLASSES = 3, 3
MOST_MILLISECONDS = 50.0


def campaign_of(features: int, *, missing: bool) -> Campaign:
    values = [f"v{i}" for i in range(VALUES)]
    return Campaign.compile(
        {
            "version": 1,
            "title": "t",
            "label": {"name": "y", "classes": [f"c{i}" for i in range(CLASSES)]},
            "features": [
                {"name": f"x{i}", "kind": "categorical", "values": values, "missing": missing} for i in range(features)
            ],
            "privacy": {"epsilon": 1.0},
        }
    )


def tally_of(campaign: Campaign, reports: int, rng: np.random.Generator) -> Tally:
    """One question answered by each device; of every feature that may be missing a tenth is."""
    tally, prior = Tally(campaign), np.array([0.5, 0.3, 0.2])
    weights = np.array([question.weight for question in campaign.questions])
    tally.n[:] = rng.multinomial(reports, weights / weights.sum())
    for question, n, counts in zip(campaign.questions, tally.n, tally.counts, strict=True):
        cells = prior
        if question.feature is not None:
            cells = (rng.dirichlet(np.full(VALUES, 3.0), size=CLASSES).T * prior).ravel()
        if question.domain_size > cells.size:
            cells = np.append(0.9 * cells, 0.1 * prior)
        counts[:] = analysis_of(question.mechanism).tally(rng.multinomial(n, cells), rng)
    return tally


def one_more(tally: Tally, rng: np.random.Generator) -> Tally:
    """The tally with one report more, to the first question."""
    question = tally.campaign.questions[0]
    tally.n[0] += 1
    tally.counts[0][:] += analysis_of(question.mechanism).tally(np.eye(question.domain_size, dtype=np.int64)[0], rng)
    return tally


def records(reports: int, features: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return rng.integers(VALUES, size=(reports, features)), rng.integers(CLASSES, size=reports)


def milliseconds(works: dict[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """Processor time of every work in turn, again and again, after one that is not counted."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    for repeat in range(repeats + 1):
        for name, work in works.items():
            start = time.process_time()
            work()
            if repeat:
                taken[name].append(1_000 * (time.process_time() - start))
    return taken


def measure(reports: int, features: int, repeats: int) -> dict[str, list[float]]:
    rng = np.random.default_rng(0)
    complete, missing = (campaign_of(features, missing=open_ones) for open_ones in (False, True))
    told, told_missing = (tally_of(campaign, reports, rng) for campaign in (complete, missing))
    values, labels = records(reports, features, rng)
    return milliseconds(
        {
            "train, complete features": lambda: train(complete, one_more(told, rng)),
            "the same reports again": lambda: train(complete, told),
            "train, features that may be missing": lambda: train(missing, one_more(told_missing, rng)),
            "the same reports again, may be missing": lambda: train(missing, told_missing),
            "estimates alone, complete": lambda: estimate(complete, told),
            "estimates alone, may be missing": lambda: estimate(missing, told_missing),
            "CategoricalNB.fit on records in clear": lambda: CategoricalNB().fit(values, labels),
        },
        repeats,
    )


def promises(found: dict[str, list[float]]) -> dict[str, bool]:
    return {
        f"{name} below {MOST_MILLISECONDS:.0f} ms": statistics.median(times) < MOST_MILLISECONDS
        for name, times in found.items()
        if name.startswith("train")
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="How long training takes.")
    parser.add_argument("--reports", type=int, default=REPORTS)
    parser.add_argument("--features", type=int, default=FEATURES)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.reports, options.features, options.repeats)
    kept = promises(found)
    about = {
        "command": " ".join(["python", "benchmarks/training.py", *sys.argv[1:]]),
        "machine": f"Python {platform.python_version()}, numpy {np.__version__}, scikit-learn {sklearn.__version__}, "
        f"{os.cpu_count()} processors, {platform.machine()}",
        "size": f"{options.reports:,} reports, {options.features} features of {VALUES} values, {CLASSES} classes",
    }
    if options.json:
        print(json.dumps({**about, "milliseconds": found, "promises": kept}, indent=2))
    else:
        print(*about.values(), sep="\n")
        for name, times in found.items():
            print(f"{name:40} {statistics.median(times):8.1f} ms ({min(times):.1f})")
        for promise, holds in kept.items():
            print(f"{promise:52} {'holds' if holds else 'BROKEN'}")
    return 0 if all(kept.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
