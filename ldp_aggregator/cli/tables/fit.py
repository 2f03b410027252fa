"""``ldp-aggregator fit``: a private model from a table that the operator holds."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from ldp_aggregator.cli.common import (
    ABOUT,
    CommandError,
    UsageError,
    add_command,
    read_draft,
    say_table,
    write_file,
)
from ldp_aggregator.trainers import (
    FederatedNB,
    GlobalSensitivityNB,
    PrivacyWarning,
    PrivateKMeans,
    SmoothSensitivityNB,
    SufficientStatisticsNB,
)
from ldp_aggregator.trainers.base import PrivateNaiveBayes
from ldp_aggregator.trainers.noise.sensitivities import ADD_REMOVE, RELATIONS
from ldp_aggregator.trainers.schemas import Schema, read_chunks, read_table
from ldp_aggregator.trainers.statistics import SilentFeatureWarning
from protocols.shell import Groups, add_json, at_least, between, say, say_json

_METHODS: Final = {
    "sums": (SufficientStatisticsNB, "Naive Bayes from noisy counts and sums; the most accurate, reads in pieces"),
    "global": (GlobalSensitivityNB, "Naive Bayes with noise for the global sensitivity (Vaidya et al. 2013)"),
    "smooth": (SmoothSensitivityNB, "Naive Bayes with noise for the smooth sensitivity (Zafarani, Clifton 2020)"),
    "federated": (FederatedNB, "Naive Bayes from the noisy sums of several nodes (Marchioro et al. 2022)"),
    "kmeans": (PrivateKMeans, "k-means on the continuous features, from noisy counts and sums"),
}
_DEFAULT: Final = "sums"

_TAKEN_BY: Final = {
    "relation": ("sums", "global", "smooth"),
    "nodes": ("federated",),
    "n_clusters": ("kmeans",),
    "test": ("sums", "global", "smooth", "federated"),
}
"""Flags that not every method takes; all but ``test`` are the trainer's parameters."""


def add_commands(groups: Groups) -> None:
    methods = "\n".join(f"  {name:11}{about}" for name, (_, about) in _METHODS.items())
    example = "table.csv --schema draft.json --epsilon 1"
    parser = add_command(
        groups,
        "fit",
        ABOUT["fit"],
        _fit,
        f"{example} --output model.json",
        f"{example} --method global --test test.csv --json",
        f"{example} --method kmeans --clusters 4",
        store=False,
    )
    parser.description = f"Learn a private model from a table.\n\nmethods:\n{methods}"
    parser.add_argument("table", type=Path, metavar="TABLE.csv", help="the private table, with a header row")
    parser.add_argument("--method", choices=_METHODS, default=_DEFAULT, help="default: %(default)s")
    parser.add_argument("--schema", type=Path, required=True, metavar="DRAFT", help="label, features and bounds")
    parser.add_argument(
        "--epsilon", type=between(0, np.inf), required=True, metavar="E", help="total privacy loss of this fit"
    )
    parser.add_argument(
        "--relation", choices=tuple(RELATIONS), help=f"of sums, global and smooth (default: {ADD_REMOVE})"
    )
    parser.add_argument("--nodes", type=at_least(1), metavar="N", help="of federated: nodes to deal the rows to (1)")
    parser.add_argument(
        "--clusters", type=at_least(1), dest="n_clusters", metavar="K", help="of kmeans: centres to find (3)"
    )
    parser.add_argument("--test", type=Path, metavar="TEST.csv", help="print the accuracy on this table; not of kmeans")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the model document to a file")
    parser.add_argument("--seed", type=int, metavar="N", help="repeatable noise, for experiments and never for release")
    add_json(parser)


def _fit(options: argparse.Namespace) -> None:
    given = {name: value for name in _TAKEN_BY if (value := getattr(options, name)) is not None}
    for name, methods in _TAKEN_BY.items():
        if name in given and options.method not in methods:
            flag = name.removeprefix("n_")
            raise UsageError(f"--{flag} goes with --method {' or '.join(methods)}, not with {options.method}")
    draft, schema = _read_schema(options.schema)
    test = given.pop("test", None)
    kind: Any = _METHODS[options.method][0]
    trainer = kind(draft, epsilon=options.epsilon, random_state=options.seed, **given)
    try:
        with _told_warnings():
            if isinstance(trainer, SufficientStatisticsNB):
                trainer.fit_chunks(read_chunks(options.table, schema))
            else:
                trainer.fit(*read_table(options.table, schema))
        accuracy = None if test is None else _accuracy(trainer, test, schema)
    except (ValueError, OverflowError) as error:
        raise CommandError(str(error)) from None
    if options.output:
        write_file(options.output, trainer.to_json())
    names = [feature.name for feature in schema.gaussians]
    centres = trainer.cluster_centers_.tolist() if isinstance(trainer, PrivateKMeans) else []
    if options.json:
        told = {"trainer": type(trainer).__name__, "guarantee": trainer.guarantee_.to_json(), "budget": trainer.budget_}
        learned = {"classes": schema.label.classes, "accuracy": accuracy}
        say_json(told | ({"centres": [dict(zip(names, one, strict=True)) for one in centres]} if centres else learned))
        return
    say(f"guarantee: {trainer.guarantee_}")
    say_table(("query", "epsilon"), [(query, f"{spent:.6g}") for query, spent in trainer.budget_.items()])
    if centres:
        say_table(names, [[f"{value:.6g}" for value in centre] for centre in centres])
    if accuracy is not None:
        say(f"accuracy on {test}: {accuracy:.4f}")
    if options.output:
        say(f"the model is in {options.output}")


def _accuracy(trainer: PrivateNaiveBayes, path: Path, schema: Schema) -> float:
    """Share of the rows whose declared class is predicted; the table to test with is not protected."""
    names = np.array([*schema.label.classes, None], dtype=object)
    right = rows = 0
    for frame, labels in read_chunks(path, schema):
        right += int((trainer.predict(frame) == names[schema.classes_of(labels, len(frame))]).sum())
        rows += len(frame)
    if rows == 0:
        raise CommandError(f"{path}: holds no rows; a table to test with has at least one")
    return right / rows


def _read_schema(path: Path) -> tuple[dict[str, Any], Schema]:
    draft = read_draft(path)
    wanted = {name: draft.get(name) for name in ("label", "features", "projection")}
    return wanted, Schema.read(wanted)


@contextmanager
def _told_warnings() -> Iterator[None]:
    """The trainers' warnings as lines on standard error, also where warnings are errors."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PrivacyWarning)
        warnings.simplefilter("always", SilentFeatureWarning)
        yield
    for warning in caught:
        sys.stderr.write(f"warning: {warning.message}\n")
