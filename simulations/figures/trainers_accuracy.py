"""Accuracy against epsilon: global and smooth sensitivity, published and sound, and sums; with diffprivlib beside them.

``python -m simulations.figures.trainers_accuracy`` writes docs/figures/trainers_accuracy.csv and .svg. ``--peer
PYTHON`` names an interpreter with diffprivlib (``python -m venv F; F/bin/pip install diffprivlib``), which then takes
part in the same run, on the same splits, where all features are numbers. ``published`` curves are drawn over the
epsilon that the papers claim; what they really guarantee is in their ``guarantee_``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ldp_aggregator.trainers import GlobalSensitivityNB, SmoothSensitivityNB, SufficientStatisticsNB
from ldp_aggregator.trainers.base import PrivateNaiveBayes
from simulations.figures.trainers_experiment import (
    EPSILONS,
    FIGURES,
    Data,
    Fold,
    Result,
    plot,
    summary,
    write_table,
)

DATA: Final = ("adult", "mushroom", "skin", "seeds", "adult-numeric", "diabetes")

Maker = Callable[..., PrivateNaiveBayes]

TRAINERS: Final[dict[str, tuple[Maker, dict[str, Any]]]] = {
    "global, published": (GlobalSensitivityNB, {"variant": "published"}),
    "global, add-remove": (GlobalSensitivityNB, {}),
    "global, replace": (GlobalSensitivityNB, {"relation": "replace"}),
    "smooth, published": (SmoothSensitivityNB, {"variant": "published"}),
    "smooth, replace": (SmoothSensitivityNB, {"relation": "replace"}),
    "sums, add-remove": (SufficientStatisticsNB, {}),
    "sums, replace": (SufficientStatisticsNB, {"relation": "replace"}),
}
"""Curves of one relation compare; under ``replace`` the labels are public."""


def measure(data: Data, repeats: int, folds: int, peer: str | None) -> list[Result]:
    splits = list(data.folds(repeats, folds))
    results = []
    for name, (maker, parameters) in TRAINERS.items():
        for epsilon in EPSILONS:
            accuracies = [
                data.score(
                    maker(data.schema, epsilon=epsilon, random_state=number, **parameters),
                    fold,
                )
                for number, fold in splits
            ]
            results.append(summary(accuracies, data=data.name, trainer=name, epsilon=epsilon))
    if peer and all(feature["kind"] == "continuous" for feature in data.schema["features"]):
        for epsilon, accuracies in zip(EPSILONS, _peer_accuracies(peer, data, splits), strict=True):
            results.append(summary(accuracies, data=data.name, trainer="diffprivlib", epsilon=epsilon))
    for name, accuracies in data.baselines(splits).items():
        results += [summary(accuracies, data=data.name, trainer=name, epsilon=epsilon) for epsilon in EPSILONS]
    return results


def _peer_accuracies(python: str, data: Data, splits: Sequence[tuple[int, Fold]]) -> list[list[float]]:
    """Accuracies per epsilon and split."""
    low, high = ([feature[bound] for feature in data.schema["features"]] for bound in ("low", "high"))
    values = data.frame[[feature["name"] for feature in data.schema["features"]]].to_numpy(dtype=np.float64)
    classes = np.unique(data.labels.astype(str), return_inverse=True)[1]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "epsilons.json").write_text(json.dumps(EPSILONS))
        for number, (train, test) in splits:
            np.savez(
                folder / f"{number:04}.npz",
                train=values[train],
                train_classes=classes[train],
                test=values[test],
                test_classes=classes[test],
                low=np.array(low, dtype=np.float64),
                high=np.array(high, dtype=np.float64),
            )
        program = Path(__file__).with_name("trainers_peer.py")
        command = [python, str(program), str(folder)]
        done = subprocess.run(command, capture_output=True, check=True, text=True)  # noqa: S603 (the user names it)
    found = json.loads(done.stdout)
    return [[accuracies[position] for accuracies in found.values()] for position in range(len(EPSILONS))]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Accuracy of the trainers against epsilon.")
    parser.add_argument("--data", default=",".join(DATA), help="default: %(default)s")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--peer", metavar="PYTHON", help="an interpreter that has diffprivlib")
    parser.add_argument("--output", type=Path, default=FIGURES, metavar="DIR")
    options = parser.parse_args(arguments)
    results = []
    for name in options.data.split(","):
        results += measure(Data(name), options.repeats, options.folds, options.peer)
        write_table(options.output / "trainers_accuracy.csv", results)
    plot(options.output / "trainers_accuracy.svg", results, "epsilon", "trainer")
    return 0


if __name__ == "__main__":
    sys.exit(main())
