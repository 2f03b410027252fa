"""What the experiments with trainers share: tables, folds, a CSV of results, a plot."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from ldp_aggregator import NaiveBayes
from ldp_aggregator.trainers import PrivacyWarning
from simulations.uci import draft_of, people_of

FIGURES: Final = Path(__file__).resolve().parents[2] / "docs" / "figures"
EPSILONS: Final = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
NON_PRIVATE_FLOOR: Final = 1e-4

Result = dict[str, Any]
Fold = tuple[NDArray[np.int64], NDArray[np.int64]]


class Data:
    """One benchmark table; ``-numeric`` after its name leaves the categorical features out."""

    def __init__(self, name: str) -> None:
        self.name = name
        source = name.removesuffix("-numeric")
        draft = draft_of(source)
        if name != source:
            draft["features"] = [f for f in draft["features"] if f["kind"] == "continuous"]
        people = people_of(source, draft)
        self.schema: dict[str, Any] = {"label": draft["label"], "features": draft["features"]}
        self.frame: pd.DataFrame = people.frame
        self.labels: NDArray[Any] = people.labels.to_numpy(dtype=object)

    def folds(self, repeats: int, folds: int) -> Iterator[tuple[int, Fold]]:
        """``repeats`` times ``folds``-fold cross-validation, with the number of each split."""
        for repeat in range(repeats):
            splitter = StratifiedKFold(folds, shuffle=True, random_state=repeat)
            for number, fold in enumerate(splitter.split(self.frame, self.labels)):
                yield repeat * folds + number, fold

    def score(self, trainer: NaiveBayes, fold: Fold) -> float:
        """Accuracy on the fold's held-out rows after learning from the others."""
        train, test = fold
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            trainer.fit(self.frame.iloc[train].reset_index(drop=True), self.labels[train])
        found = trainer.predict(self.frame.iloc[test].reset_index(drop=True))
        return float((found == self.labels[test]).mean())

    def baselines(self, folds: Sequence[tuple[int, Fold]]) -> dict[str, list[float]]:
        """Accuracies of Naive Bayes without noise and of the most frequent class."""
        plain, majority = [], []
        for _, fold in folds:
            plain.append(self.score(NaiveBayes(self.schema, variance_floor=NON_PRIVATE_FLOOR), fold))
            values, counts = np.unique(self.labels[fold[0]], return_counts=True)
            majority.append(float((self.labels[fold[1]] == values[counts.argmax()]).mean()))
        return {"non-private": plain, "majority": majority}


def summary(accuracies: Sequence[float], **keys: Any) -> Result:
    """One line of a result table: the mean accuracy and its standard error over the splits."""
    values = np.array(accuracies)
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
    return {**keys, "accuracy": round(float(values.mean()), 4), "error": round(error, 4), "runs": len(values)}


def write_table(path: Path, results: Sequence[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(results[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(results)


def plot(
    path: Path, results: Sequence[Mapping[str, Any]], x: str, line: str, label: Callable[[Any], str] = str
) -> None:
    """One panel for each data set: accuracy over ``x``, a curve for each value of ``line``."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    table = pd.DataFrame(results)
    names = list(dict.fromkeys(table["data"]))
    columns = min(len(names), 3)
    rows = -(-len(names) // columns)
    figure, axes = pyplot.subplots(
        rows, columns, figsize=(5 * columns, 3.6 * rows), squeeze=False, layout="constrained"
    )
    for panel in axes.flat[len(names) :]:
        panel.set_visible(False)
    for panel, name in zip(axes.flat, names, strict=False):
        for key, curve in table[table["data"] == name].groupby(line, sort=False):
            style = {"linestyle": "--", "color": "grey"} if key == "majority" else {}
            style = {"linestyle": "--", "color": "black"} if key == "non-private" else style
            marker = "" if style else "o"
            panel.plot(curve[x], curve["accuracy"], marker=marker, markersize=3, label=label(key), **style)
        panel.set(title=name, xlabel=x, ylabel="accuracy", xscale="log" if x == "epsilon" else "linear")
        panel.legend(fontsize=7)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
