"""Simulates a campaign at several epsilons and draws how accurate its model is at each.

python examples/choose_epsilon.py epsilon.svg
"""

import json
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from simulate_a_campaign import customers

mpl.use("agg")
from matplotlib import pyplot as plt

from ldp_aggregator import NaiveBayes, train
from protocols import Campaign
from simulations import simulate
from simulations.tables.sources import read_draft

DEVICES = 20_000
EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
REPEATS = 5


def main(path: str) -> None:
    rng = np.random.default_rng(1)
    people, labels = customers(DEVICES, rng)
    others, truth = customers(10_000, rng)
    draft = read_draft(Path(__file__).parent / "campaign.toml")
    means, deviations = [], []
    for epsilon in EPSILONS:
        campaign = Campaign.compile({**draft, "privacy": {"epsilon": epsilon}})
        models = [train(campaign, simulate(campaign, people, labels, rng)) for _ in range(REPEATS)]
        scores = [model.score(others, truth) for model in models]
        means.append(np.mean(scores))
        deviations.append(np.std(scores, ddof=1))
        print(f"epsilon {epsilon:4}: accuracy {means[-1]:.3f} +- {deviations[-1]:.3f}")
    baseline = NaiveBayes(schema=json.loads(campaign.document)).fit(people, labels).score(others, truth)
    majority = truth.value_counts(normalize=True).max()
    print(f"no privacy  : accuracy {baseline:.3f}")
    print(f"always one  : accuracy {majority:.3f}")
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.errorbar(EPSILONS, means, yerr=deviations, marker="o", capsize=3, label=f"{DEVICES:,} devices")
    axes.axhline(baseline, linestyle=":", color="grey", label="without privacy")
    axes.axhline(majority, linestyle="--", color="grey", label="always the most frequent class")
    axes.set(xscale="log", xlabel="epsilon, the total loss of a device", ylabel="accuracy on others (bars: one SD)")
    axes.legend()
    figure.savefig(path)


if __name__ == "__main__":
    main(sys.argv[1])
