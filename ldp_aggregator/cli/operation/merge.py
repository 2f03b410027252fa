"""``ldp-aggregator merge``: two embedded stores into a third."""

from __future__ import annotations

import argparse
from pathlib import Path

from ldp_aggregator.cli.common import Groups, add_command, say
from ldp_aggregator.service.acting import local_actor
from ldp_aggregator.store.combining import Combined, combine_stores
from ldp_aggregator.store.rights import Act


def add_commands(groups: Groups) -> None:
    text = "add two embedded stores up into a new one, and say how many reports both had; models and tokens stay behind"
    parser = add_command(groups, "merge", text, _merge, "north south --output both")
    parser.add_argument("first", type=Path, metavar="A", help="a data folder")
    parser.add_argument("second", type=Path, metavar="B", help="another one")
    parser.add_argument("-o", "--output", type=Path, metavar="C", required=True, help="the new data folder")
    parser.add_argument(
        "--assume-disjoint",
        action="store_true",
        help="merge sealed campaigns, too; their ids are gone, so that no report is in both stores is your word",
    )


def _merge(options: argparse.Namespace) -> None:
    disjoint = ", assumed to be disjoint" if options.assume_disjoint else ""
    act = Act(local_actor(), "merge stores", detail=f"{options.first} and {options.second}{disjoint}")
    merged = combine_stores(
        options.first, options.second, options.output, assume_disjoint=options.assume_disjoint, act=act
    )
    for one in merged:
        say(f"{one.id} {one.count} reports or shares{_counted_twice(one)}")


def _counted_twice(merged: Combined) -> str:
    known = f", {merged.overlap} of them counted twice: both stores had them" if merged.overlap else ""
    return known + (f", at most {merged.unchecked} counted twice: the ids are gone" if merged.unchecked else "")
