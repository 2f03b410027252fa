"""``ldp-aggregator evaluate``: the draft of a round that tells how accurate models of a campaign are."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ldp_aggregator.cli.common import (
    CommandError,
    Groups,
    add_command,
    add_store_options,
    say,
    with_store,
    write_file,
)
from ldp_aggregator.learning.rounds.candidates import DEFAULT
from ldp_aggregator.learning.rounds.evaluation import FEWEST_VOTERS
from ldp_aggregator.service.publishing import UntrainableError
from ldp_aggregator.service.rounds import draft_evaluation
from protocols import Campaign


def add_commands(groups: Groups) -> None:
    text = "draft a round of the same study in which other devices say which of a campaign's models are right"
    parser = add_command(groups, "evaluate", text, _evaluate, "ID --output evaluation.json")
    add_store_options(parser)
    parser.add_argument("ids", nargs="+", metavar="ID", help="the campaign's id; several as with train")
    parser.add_argument("--output", type=Path, required=True, metavar="DRAFT.json", help="where the draft goes")
    parser.add_argument(
        "--candidates",
        metavar="A,B,...",
        help=f"the first is kept unless another is better (default: {', '.join(DEFAULT)})",
    )
    parser.add_argument("--title", help="what people are shown (default: the campaign's, with a question)")


def _evaluate(options: argparse.Namespace) -> None:
    names = None if options.candidates is None else [name.strip() for name in options.candidates.split(",")]
    try:
        draft = with_store(options, lambda store: draft_evaluation(store, options.ids, names, options.title))
    except UntrainableError as error:
        raise CommandError(str(error)) from None
    campaign = Campaign.compile(draft)
    write_file(options.output, json.dumps(draft, ensure_ascii=False, indent=2) + "\n")
    told = ", ".join(candidate.name for candidate in campaign.candidates)
    say(f"the draft of an evaluation round is in {options.output}; its candidates are {told}")
    say(f"from {len(campaign.candidates) * FEWEST_VOTERS:,} devices on it may choose another than the first")
