"""``ldp-aggregator project``: a projection from public data or from a private round, written into a draft."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pandas as pd

from ldp_aggregator.cli.common import (
    ABOUT,
    CommandError,
    UsageError,
    add_command,
    read_draft,
    with_store,
    write_file,
)
from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.learning.projections import (
    InputMoments,
    add_to_draft,
    fit_projection,
    moments_of_round,
    moments_of_table,
)
from ldp_aggregator.store import Store
from protocols import Campaign
from protocols.document.schema import METHODS, ContinuousFeature
from protocols.shell import Groups, say


def add_commands(groups: Groups) -> None:
    parser = add_command(
        groups,
        "project",
        ABOUT["project"],
        _fit,
        "public.csv --draft draft.json --method dca --components 4",
        "--round ID --draft draft.json --method pca --components 2 --output projected.json",
    )
    parser.add_argument(
        "table", nargs="?", type=Path, metavar="PUBLIC.csv", help="a table that is public, with the classes"
    )
    parser.add_argument("--round", metavar="ID", help="instead of a table: the id of a campaign that asked for moments")
    parser.add_argument(
        "--draft", type=Path, required=True, metavar="DRAFT", help="the draft; rewritten in place if JSON"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the new draft, JSON, here; DRAFT stays")
    parser.add_argument("--method", choices=METHODS, required=True)
    parser.add_argument("--components", type=int, required=True, metavar="K", help="number of outputs")
    parser.add_argument("--inputs", metavar="A,B,...", help="features to project (default: every continuous one)")
    parser.add_argument("--bins", type=int, metavar="N", help="discretise the outputs (default: Gaussian)")


def _fit(options: argparse.Namespace) -> None:
    if (options.table is None) == (options.round is None):
        raise UsageError("name either a public table or --round ID")
    if options.table and {"config", "data", "database"} & vars(options).keys():
        raise UsageError("a public table needs no store; leave out --config, --data and --database")
    target = options.output or options.draft
    if target.suffix.lower() == ".toml":
        raise UsageError("the new draft is JSON; name it with --output")
    draft = read_draft(options.draft)
    try:
        moments, study = _moments_of_round(options) if options.round else (_moments_of_public(options, draft), None)
        projection = fit_projection(moments, options.method, options.components, bins=options.bins)
        fitted = add_to_draft(draft, projection, study)
    except ValueError as error:
        raise CommandError(str(error)) from None
    campaign = Campaign.compile(fitted)
    write_file(target, json.dumps(fitted, ensure_ascii=False, indent=2) + "\n")
    say(
        f"{options.method} with {options.components} of {len(moments.features)} components, fitted on "
        f"{moments.fitted_on}, is in {target}; it asks {len(campaign.questions)} questions"
    )


def _moments_of_public(options: argparse.Namespace, draft: dict[str, Any]) -> InputMoments:
    campaign = Campaign.compile({**draft, "projection": None})
    continuous = {f.name: f for f in campaign.features if isinstance(f, ContinuousFeature)}
    names = options.inputs.split(",") if options.inputs else list(continuous)
    unknown = [name for name in names if name not in continuous]
    if unknown or not names:
        raise ValueError(f"{', '.join(unknown) or 'no feature'} is not a continuous feature of the draft")
    try:
        frame = pd.read_csv(options.table, keep_default_na=False, na_values=[""])
    except (OSError, ValueError) as error:
        raise CommandError(f"cannot read {options.table}: {error}") from None
    return moments_of_table([continuous[name] for name in names], campaign.label, frame)


def _moments_of_round(options: argparse.Namespace) -> tuple[InputMoments, str | None]:
    if options.inputs:
        raise UsageError("--inputs goes with a public table; a round's inputs are its features")

    async def read(store: Store) -> tuple[bytes, Tally]:
        return await store.document(options.round), await store.tally(options.round)

    document, tally = with_store(options, read, read_only=True)
    campaign = Campaign.parse(document, options.round)
    return moments_of_round(campaign, tally), campaign.study
