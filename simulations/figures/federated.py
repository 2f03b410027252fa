"""Federated Naive Bayes: accuracy over the epsilon of each node for 1, 10, 100 and 1000 nodes, sound and as published.

Marchioro, Giaretta, Markatos, Girdzijauskas 2022, figures 1 to 3. Rows are dealt to the nodes at random; where there
are fewer rows than nodes, some nodes have none and send noise like the others. On a table without numbers the published
algorithm is the sound one, and is not measured twice.
"""

from __future__ import annotations

from itertools import product
from typing import Final

import pandas as pd

from ldp_aggregator.trainers import FederatedNB
from ldp_aggregator.trainers.base import PUBLISHED, SOUND
from simulations.figures.cross_validation import FOLDS, REPEATS, Row, Split, cross_validate, summarise
from simulations.figures.figure import Execution, Figure, Plot

DATA: Final = ("adult", "mushroom", "skin", "accelerometer", "spect")
NODES: Final = (1, 10, 100, 1000)
EPSILONS: Final = (0.01, 0.1, 1.0, 10.0)
VARIANTS: Final = (SOUND, PUBLISHED)


def measure(execution: Execution) -> pd.DataFrame:
    """Mean accuracies: a row for every table, variant, number of nodes and epsilon."""
    rows = cross_validate(execution, DATA, measure_split, VARIANTS, NODES, EPSILONS)
    return summarise(rows, "nodes").astype({"nodes": "Int64"})


def measure_split(split: Split) -> list[Row]:
    """A row for every variant, number of nodes and epsilon, and the references."""
    rows = [{**row, "nodes": None} for row in split.references()]
    variants = VARIANTS if split.data.has_numbers else (SOUND,)
    for fit, (variant, nodes, epsilon) in enumerate(product(variants, NODES, EPSILONS)):
        seed = split.seed(fit)
        trainer = FederatedNB(split.data.schema, nodes=nodes, epsilon=epsilon, variant=variant, random_state=seed)
        rows.append({**split.fit(trainer, trainer=variant, epsilon=epsilon), "nodes": nodes})
    return rows


FIGURE: Final = Figure(
    name="federated-figures-1-to-3",
    about="Federated Naive Bayes (Marchioro et al.), figures 1 to 3: 1 to 1000 nodes",
    runs=REPEATS,
    of_runs=f"times {FOLDS} folds",
    measure=measure,
    plots=(
        Plot(
            name="",
            caption="Sound or as published, and the number of nodes. Epsilon is the total of a row at its node; "
            "neighbours: one row more or less. Published noise follows a node's own largest value, which guarantees "
            "nothing. Bands of 95 %.",
            panels=("data",),
            curves=("trainer", "nodes"),
        ),
    ),
    least_runs=1,
)
