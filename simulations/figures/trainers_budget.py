"""Accuracy on adult against the share of epsilon that sums and squares get (Zafarani, Clifton 2020, Figure 10).

``python -m simulations.figures.trainers_budget`` writes docs/figures/trainers_budget.csv and .svg.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from simulations.figures.trainers_accuracy import TRAINERS
from simulations.figures.trainers_experiment import FIGURES, Data, Result, plot, summary, write_table

SHARES: Final = (0.1, 0.25, 0.5, 0.75, 0.9)
EPSILONS: Final = (0.1, 1.0)
COMPARED: Final = ("smooth, replace", "global, replace", "sums, replace")


def measure(data: Data, repeats: int, folds: int) -> list[Result]:
    splits = list(data.folds(repeats, folds))
    results = []
    for epsilon in EPSILONS:
        for name in COMPARED:
            maker, parameters = TRAINERS[name]
            for share in SHARES:
                accuracies = []
                for number, fold in splits:
                    trainer = maker(
                        data.schema,
                        epsilon=epsilon,
                        numerical_share=share,
                        random_state=number,
                        **parameters,
                    )
                    accuracies.append(data.score(trainer, fold))
                panel = f"{data.name}, epsilon {epsilon:g}"
                results.append(summary(accuracies, data=panel, trainer=name, share=share))
    return results


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Accuracy against the share of epsilon for the moments.")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--output", type=Path, default=FIGURES, metavar="DIR")
    options = parser.parse_args(arguments)
    results = measure(Data("adult"), options.repeats, options.folds)
    write_table(options.output / "trainers_budget.csv", results)
    plot(options.output / "trainers_budget.svg", results, "share", "trainer")
    return 0


if __name__ == "__main__":
    sys.exit(main())
