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
    CommandError,
    Groups,
    add_command,
    add_group,
    positive,
    read_file,
    say,
    say_json,
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
from ldp_aggregator.trainers.base import PUBLISHED, SOUND, PrivateNaiveBayes
from ldp_aggregator.trainers.csv_tables import read_chunks, read_table
from ldp_aggregator.trainers.kmeans import EVEN, OPTIMAL
from ldp_aggregator.trainers.noise.sensitivities import ADD_REMOVE, RELATIONS
from ldp_aggregator.trainers.schemas import Schema
from ldp_aggregator.trainers.silence import SilentFeatureWarning
from protocols import DraftError
from protocols.fields import parse_json

_CLASSIFIERS: Final = {
    "global": (GlobalSensitivityNB, "Naive Bayes with noise for the global sensitivity (Vaidya et al. 2013)"),
    "smooth": (SmoothSensitivityNB, "Naive Bayes with noise for the smooth sensitivity (Zafarani, Clifton 2020)"),
    "sums": (SufficientStatisticsNB, "Naive Bayes from noisy counts and sums; the most accurate, reads in pieces"),
    "federated": (FederatedNB, "Naive Bayes from the noisy sums of several nodes (Marchioro et al. 2022)"),
}

_EXAMPLE: Final = "table.csv --schema draft.json --epsilon 1"


def add_commands(groups: Groups) -> None:
    text = "learn a private model from a table"
    commands = add_group(
        groups, "fit", text, "sums table.csv --schema draft.json --epsilon 1 --output model.json", title="trainers"
    )
    for name, (_, description) in _CLASSIFIERS.items():
        parser = add_command(commands, name, description, _fit, _EXAMPLE, f"{_EXAMPLE} --test test.csv --json")
        parser.set_defaults(trainer=name)
        _add_common(parser)
        parser.add_argument("--test", type=Path, metavar="TEST.csv", help="print the accuracy on this table")
        parser.add_argument("--output", type=Path, metavar="FILE", help="write the model document to a file")
        parser.add_argument("--relation", choices=tuple(RELATIONS), default=ADD_REMOVE, help="default: %(default)s")
        parser.add_argument("--numerical-share", type=float, metavar="SHARE", help="share of epsilon for the moments")
        parser.add_argument("--variance-floor", type=float, metavar="V", help="relative to (high - low)^2")
        if name != "sums":
            parser.add_argument("--variant", choices=(SOUND, PUBLISHED), default=SOUND, help="default: %(default)s")
        if name == "federated":
            parser.add_argument("--nodes", type=int, default=1, metavar="N", help="nodes to deal the rows to")
            parser.add_argument(
                "--groups", type=int, default=1, metavar="G", help="take the median over so many groups"
            )
    parser = add_command(
        commands,
        "kmeans",
        "k-means on the continuous features, from noisy counts and sums",
        _cluster,
        f"{_EXAMPLE} --clusters 4",
    )
    _add_common(parser)
    parser.add_argument("--clusters", type=int, default=3, metavar="K", help="default: %(default)s")
    parser.add_argument("--iterations", type=int, default=5, metavar="T", help="default: %(default)s")
    parser.add_argument("--split", choices=(EVEN, OPTIMAL), default=EVEN, help="of epsilon; default: %(default)s")


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", type=Path, metavar="TABLE.csv", help="the private table, with a header row")
    parser.add_argument("--schema", type=Path, required=True, metavar="DRAFT.json", help="label, features and bounds")
    parser.add_argument("--epsilon", type=positive, required=True, metavar="E", help="total privacy loss of this fit")
    parser.add_argument("--seed", type=int, metavar="N", help="repeatable noise, for experiments and never for release")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _fit(options: argparse.Namespace) -> None:
    draft, schema = _read_schema(options.schema)
    kind = _CLASSIFIERS[options.trainer][0]
    names = ("epsilon", "relation", "variant", "numerical_share", "variance_floor", "nodes", "groups")
    parameters = {name: getattr(options, name) for name in names if getattr(options, name, None) is not None}
    trainer = kind(draft, random_state=options.seed, **parameters)
    try:
        with _told_warnings():
            if isinstance(trainer, SufficientStatisticsNB):
                trainer.fit_chunks(read_chunks(options.table, schema))
            else:
                trainer.fit(*read_table(options.table, schema))
        accuracy = None if options.test is None else _accuracy(trainer, options.test, schema)
    except (ValueError, OverflowError) as error:
        raise CommandError(str(error)) from None
    if options.output:
        write_file(options.output, trainer.to_json())
    if options.json:
        result = {"trainer": type(trainer).__name__, "guarantee": trainer.guarantee_.to_json()}
        say_json({**result, "budget": trainer.budget_, "classes": schema.label.classes, "accuracy": accuracy})
        return
    say(f"guarantee: {trainer.guarantee_}")
    say_table(("query", "epsilon"), [(query, f"{spent:.6g}") for query, spent in trainer.budget_.items()])
    if accuracy is not None:
        say(f"accuracy on {options.test}: {accuracy:.4f}")
    if options.output:
        say(f"the model is in {options.output}")


def _cluster(options: argparse.Namespace) -> None:
    draft, schema = _read_schema(options.schema)
    clusters = PrivateKMeans(
        draft,
        n_clusters=options.clusters,
        epsilon=options.epsilon,
        iterations=options.iterations,
        split=options.split,
        random_state=options.seed,
    )
    try:
        with _told_warnings():
            clusters.fit(read_table(options.table, schema)[0])
    except (ValueError, OverflowError) as error:
        raise CommandError(str(error)) from None
    names = [feature.name for feature in schema.gaussians]
    if options.json:
        centres = [dict(zip(names, centre, strict=True)) for centre in clusters.cluster_centers_.tolist()]
        say_json({"guarantee": clusters.guarantee_.to_json(), "budget": clusters.budget_, "centres": centres})
        return
    say(f"guarantee: {clusters.guarantee_}")
    say_table(names, [[f"{value:.6g}" for value in centre] for centre in clusters.cluster_centers_.tolist()])


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
    draft = parse_json(read_file(path), DraftError)
    if not isinstance(draft, dict):
        raise CommandError(f"{path} must hold an object, the draft of a campaign")
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
