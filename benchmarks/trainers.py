"""How fast the trainers are, with scikit-learn's GaussianNB on the same data in the same run.

Run: ``python benchmarks/trainers.py [--rows N] [--repeats R] [--json]``. Promised at 1,700,000 rows: smooth sensitivity
of one column below 2 s; sums of 13 features below 5 s and within 3 times GaussianNB. The exit code is 1 where a promise
is broken. Every figure is the median of the repeats, in seconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
from sklearn.naive_bayes import GaussianNB

from ldp_aggregator.trainers import FederatedNB, SmoothSensitivityNB, SufficientStatisticsNB, smoothness

ROWS = 1_700_000
FEATURES = 13
LOW, HIGH = -5.0, 6.0
BETAS = (0.1, 1e-3, 1e-6)
"""The slowest of them counts: a smaller beta looks at more replacements."""


def make_table(rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 2, size=rows)
    values = rng.normal(size=(rows, FEATURES)) + classes[:, None]
    return pd.DataFrame(values, columns=[f"f{i}" for i in range(FEATURES)]), classes


def seconds(work: Callable[[], object], repeats: int) -> float:
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def measure(rows: int, repeats: int) -> dict[str, float]:
    frame, classes = make_table(rows)
    features = [{"name": name, "kind": "continuous", "missing": False, "low": LOW, "high": HIGH} for name in frame]
    schema = {"label": {"name": "class", "classes": ["0", "1"]}, "features": features}
    column = ((frame["f0"].clip(LOW, HIGH) - LOW) / (HIGH - LOW)).to_numpy()

    def smooth_one_column(beta: float) -> None:
        ascending = np.sort(column)
        smoothness.smooth_mean(ascending, beta)
        smoothness.smooth_variance(ascending, beta)

    replaced = {"epsilon": 1.0, "relation": "replace"}
    return {
        "smooth sensitivity, one column": max(seconds(lambda b=beta: smooth_one_column(b), repeats) for beta in BETAS),
        "sums": seconds(lambda: SufficientStatisticsNB(schema, epsilon=1.0).fit(frame, classes), repeats),
        "GaussianNB on the DataFrame": seconds(lambda: GaussianNB().fit(frame, classes), repeats),
        "GaussianNB on the array": seconds(lambda: GaussianNB().fit(frame.to_numpy(), classes), repeats),
        "smooth": seconds(lambda: SmoothSensitivityNB(schema, **replaced).fit(frame, classes), repeats),
        "federated, 1000 nodes": seconds(lambda: FederatedNB(schema, nodes=1000).fit(frame, classes), repeats),
    }


def promises(found: dict[str, float]) -> dict[str, bool]:
    peer = min(found["GaussianNB on the DataFrame"], found["GaussianNB on the array"])
    return {
        "smooth sensitivity of one column below 2 s": found["smooth sensitivity, one column"] < 2,
        "sums below 5 s": found["sums"] < 5,
        "sums within 3 times GaussianNB": found["sums"] < 3 * peer,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="How fast the trainers are.")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.rows, options.repeats)
    kept = promises(found)
    if options.json:
        print(json.dumps({"rows": options.rows, "seconds": found, "promises": kept}, indent=2))
    else:
        print(f"{options.rows:,} rows, {FEATURES} features, median of {options.repeats}")
        for name, value in found.items():
            print(f"{name:32} {value:8.3f} s")
        for promise, holds in kept.items():
            print(f"{promise:48} {'holds' if holds else 'BROKEN'}")
    return 0 if all(kept.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
