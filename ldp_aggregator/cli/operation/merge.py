"""``ldp-aggregator merge``: two embedded stores into a third."""

from __future__ import annotations

import argparse
from pathlib import Path

from ldp_aggregator.cli.common import Groups, add_command, say
from ldp_aggregator.store.merging import merge_stores


def add_commands(groups: Groups) -> None:
    text = "add two embedded stores up into a new one, exactly; models and tokens stay behind"
    parser = add_command(groups, "merge", text, _merge)
    parser.add_argument("first", type=Path, metavar="A", help="a data folder")
    parser.add_argument("second", type=Path, metavar="B", help="another one")
    parser.add_argument("-o", "--output", type=Path, metavar="C", required=True, help="the new data folder")
    parser.add_argument(
        "--assume-disjoint",
        action="store_true",
        help="merge closed campaigns, too; their ids are gone, so that no report is in both stores is your word",
    )


def _merge(options: argparse.Namespace) -> None:
    merged = merge_stores(options.first, options.second, options.output, assume_disjoint=options.assume_disjoint)
    for campaign_id, count in merged:
        say(f"{campaign_id} {count} reports or shares")
