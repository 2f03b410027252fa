"""Accuracy of federated Naive Bayes against epsilon for 1, 10, 100 and 1000 nodes, sound and as published.

``python -m simulations.figures.trainers_federated`` writes docs/figures/trainers_federated.csv and .svg. A data set
with fewer rows than nodes leaves some nodes without any; they send noise like the others.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ldp_aggregator.trainers import FederatedNB
from simulations.figures.trainers_experiment import FIGURES, Data, Result, plot, summary, write_table

DATA: Final = ("adult", "mushroom", "skin", "accelerometer", "spect")
NODES: Final = (1, 10, 100, 1000)
EPSILONS: Final = (0.01, 0.1, 1.0, 10.0)
VARIANTS: Final = ("sound", "published")


def measure(data: Data, repeats: int, folds: int) -> list[Result]:
    splits = list(data.folds(repeats, folds))
    results = []
    for variant in VARIANTS:
        for nodes in NODES:
            for epsilon in EPSILONS:
                accuracies = []
                for number, fold in splits:
                    trainer = FederatedNB(
                        data.schema,
                        nodes=nodes,
                        epsilon=epsilon,
                        variant=variant,
                        random_state=number,
                    )
                    accuracies.append(data.score(trainer, fold))
                name = f"{nodes} nodes, {variant}"
                results.append(summary(accuracies, data=data.name, trainer=name, epsilon=epsilon))
    for name, accuracies in data.baselines(splits).items():
        results += [summary(accuracies, data=data.name, trainer=name, epsilon=epsilon) for epsilon in EPSILONS]
    return results


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Accuracy of federated Naive Bayes against epsilon.")
    parser.add_argument("--data", default=",".join(DATA), help="default: %(default)s")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--output", type=Path, default=FIGURES, metavar="DIR")
    options = parser.parse_args(arguments)
    results = []
    for name in options.data.split(","):
        results += measure(Data(name), options.repeats, options.folds)
        write_table(options.output / "trainers_federated.csv", results)
    plot(options.output / "trainers_federated.svg", results, "epsilon", "trainer")
    return 0


if __name__ == "__main__":
    sys.exit(main())
