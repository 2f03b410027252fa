"""``ldp-aggregator second-round``: the draft of a round that asks more about what tells the class."""

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
    say_table,
    with_store,
    write_file,
)
from ldp_aggregator.service.publishing import UntrainableError
from ldp_aggregator.service.rounds import draft_second_round
from protocols import Campaign


def add_commands(groups: Groups) -> None:
    text = "draft the next round of a study, whose devices are asked more about what tells the class"
    parser = add_command(groups, "second-round", text, _draft, "ID --output second.json")
    add_store_options(parser)
    parser.add_argument("ids", nargs="+", metavar="ID", help="the campaign's id; several as with train")
    parser.add_argument("--output", type=Path, required=True, metavar="DRAFT.json", help="where the draft goes")
    parser.add_argument("--title", help="what people are shown (default: the campaign's)")


def _draft(options: argparse.Namespace) -> None:
    try:
        draft = with_store(options, lambda store: draft_second_round(store, options.ids, options.title))
    except UntrainableError as error:
        raise CommandError(str(error)) from None
    campaign = Campaign.compile(draft)
    write_file(options.output, json.dumps(draft, ensure_ascii=False, indent=2) + "\n")
    total = sum(question.weight for question in campaign.questions)
    shares = {feature.name: 0.0 for feature in campaign.asked}
    for question in campaign.questions:
        if question.feature is not None:
            shares[question.feature] += question.weight / total
    say_table(
        ("feature", "devices"),
        [(name, f"{share:.1%}") for name, share in sorted(shares.items(), key=lambda pair: -pair[1])],
    )
    say(f"\nthe draft of the second round is in {options.output}; train takes both rounds' ids")
