"""One table, four private trainers and no privacy: which one knows most, at which epsilon? Prints and draws it.

python examples/compare_trainers.py comparison.svg
"""

import sys
import warnings
from functools import partial

import matplotlib as mpl
import numpy as np
from simulate_a_campaign import writers

mpl.use("agg")
from matplotlib import pyplot as plt

from ldp_aggregator import NaiveBayes
from ldp_aggregator.trainers import (
    FederatedNB,
    GlobalSensitivityNB,
    PrivacyWarning,
    SmoothSensitivityNB,
    SufficientStatisticsNB,
)

# Public knowledge, never read off the table.
SCHEMA = {
    "label": {"name": "suits", "classes": ["yes", "no"]},
    "features": [
        {"name": "age", "kind": "categorical", "values": ["young", "medium", "old"]},
        {"name": "words", "kind": "continuous", "low": 0, "high": 200_000},
    ],
}
TRAINERS = {
    "GlobalSensitivityNB": GlobalSensitivityNB,
    "SmoothSensitivityNB": SmoothSensitivityNB,
    "SufficientStatisticsNB": SufficientStatisticsNB,
    "FederatedNB, 20 nodes": partial(FederatedNB, nodes=20),
}
EPSILONS = (0.05, 0.2, 1.0, 5.0)
SEEDS = range(5)


def main(path: str) -> None:
    warnings.simplefilter("ignore", PrivacyWarning)  # A seed makes an experiment repeatable; what is released has none.
    rng = np.random.default_rng(1)
    (table, labels), (others, truth) = writers(2_000, rng), writers(5_000, rng)
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for name, kind in TRAINERS.items():
        accuracies = [
            np.mean(
                [kind(SCHEMA, epsilon=e, random_state=seed).fit(table, labels).score(others, truth) for seed in SEEDS]
            )
            for e in EPSILONS
        ]
        print(f"{name:23}", *(f"{accuracy:.3f}" for accuracy in accuracies))
        axes.plot(EPSILONS, accuracies, marker="o", label=name)
    baseline = NaiveBayes(SCHEMA).fit(table, labels).score(others, truth)
    print(f"{'without privacy':23} {baseline:.3f}")
    axes.axhline(baseline, linestyle=":", color="grey", label="without privacy")
    axes.set(xscale="log", xlabel="epsilon of the whole fit", ylabel=f"accuracy on {len(others):,} others")
    axes.legend()
    figure.savefig(path)


if __name__ == "__main__":
    main(sys.argv[1])
