"""The demonstration's campaign: is a lump malignant? Ten measurements of cell nuclei, Wisconsin diagnostic data.

scikit-learn ships the table (569 people; Street, Wolberg, Mangasarian 1993), so nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pandas as pd
from sklearn.datasets import load_breast_cancer

from simulations.tables.frames import Table
from simulations.tables.sources import Source

LABEL: Final = "diagnosis"

BOUNDS: Final[Mapping[str, tuple[float, float]]] = {
    "mean radius": (5, 30),
    "mean texture": (5, 40),
    "mean perimeter": (40, 190),
    "mean area": (100, 2500),
    "mean smoothness": (0.05, 0.17),
    "mean compactness": (0, 0.35),
    "mean concavity": (0, 0.45),
    "mean concave points": (0, 0.2),
    "mean symmetry": (0.1, 0.3),
    "mean fractal dimension": (0.05, 0.1),
}
"""Public knowledge about the measurements, not about these people: the ranges that the data set's own description
publishes, rounded by hand. Nothing here is computed from the table.

Ten of the table's thirty columns: the others are the spread and the extreme of the same ten measurements. Every device
answers about one feature, so three times the questions would leave a third of the answers to each."""

BINS: Final = 4
EPSILON: Final = 2.0
"""With 20,000 devices each of the ten questions gets about 2,000 answers. At epsilon 2 these estimate each of the 8
joint shares of 4 bins and 2 classes (1/8 on average) with a standard error of 0.015; with 8 bins it would be 0.017
around an average of 1/16, and asking about all thirty columns would make it 0.026."""


def demonstration_source() -> Source:
    """The table's people, ten measurements and the diagnosis of each, and the campaign that asks them."""
    draft = {
        "version": 1,
        "title": "Is a lump malignant?",
        "purpose": "a demonstration with public measurements of cell nuclei",
        "label": {"name": LABEL, "classes": ["malignant", "benign"], "weight": 0},
        "features": [
            {"name": name, "kind": "continuous", "low": low, "high": high, "bins": BINS, "missing": False}
            for name, (low, high) in BOUNDS.items()
        ],
        "privacy": {"epsilon": EPSILON},
    }
    bunch = load_breast_cancer(as_frame=True)
    names = bunch.target_names
    labels = pd.Series([str(names[code]) for code in bunch.target], name=LABEL)
    return Source("scikit-learn's breast cancer data, 569 people", Table(bunch.data[list(BOUNDS)], labels), draft)
