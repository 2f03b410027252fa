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
from simulations.figures.cross_validation import Row, Split, cross_validate, summarise
from simulations.figures.figure import Execution

DATA: Final = ("adult", "mushroom", "skin", "accelerometer", "spect")
NODES: Final = (1, 10, 100, 1000)
EPSILONS: Final = (0.01, 0.1, 1.0, 10.0)
VARIANTS: Final = (SOUND, PUBLISHED)


def measure(execution: Execution) -> pd.DataFrame:
    """Mean accuracies: a row for every table, variant, number of nodes and epsilon."""
    described = [VARIANTS, NODES, EPSILONS]
    rows = cross_validate(execution, DATA, measure_split, *described)
    summary = summarise(rows, "nodes")
    return summary.astype({"nodes": "Int64"})


def measure_split(split: Split) -> list[Row]:
    """A row for every variant, number of nodes and epsilon, and the references."""
    rows = [{**row, "nodes": None} for row in split.references()]
    variants = VARIANTS if split.data.has_numbers else (SOUND,)
    for fit, (variant, nodes, epsilon) in enumerate(product(variants, NODES, EPSILONS)):
        seed = split.seed(fit)
        trainer = FederatedNB(split.data.schema, nodes=nodes, epsilon=epsilon, variant=variant, random_state=seed)
        rows.append({**split.fit(trainer, trainer=variant, epsilon=epsilon), "nodes": nodes})
    return rows
