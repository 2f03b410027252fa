"""``python -m simulations draft``: a campaign's draft from a table, with loud notes on what it took from the data."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Final

from protocols.shell import Groups, at_least, between, say_json
from simulations.commands.common import DERIVED_EPSILON, warn
from simulations.tables.frames import TABLE_HELP, TableError, read_text_table
from simulations.tables.sources import DEFAULT_BINS, draft_from_table

DESCRIPTION: Final = """\
Derive a campaign's draft from a table, as a start for experiments.

Prints the draft (JSON) on standard output, and on standard error a note for every value list and every bound: they were
read off the data, a campaign publishes them, and they must be replaced by public knowledge before anyone is asked. The
ordered columns of a Parquet file (Categoricals of pandas) give their values in their order. With --json one
object holds the draft, the notes and the columns that were left out."""


def add_command(groups: Groups) -> None:
    parser = groups.add_parser(
        "draft",
        help="derive a draft from a table; prints it, and what in it must be replaced",
        description=DESCRIPTION,
        examples=("--data people.csv --label income --output draft.json",),
    )
    parser.set_defaults(command=_run)
    parser.add_argument("--data", required=True, metavar="TABLE", help=TABLE_HELP)
    parser.add_argument("--label", required=True, metavar="COLUMN", help="the column to learn")
    parser.add_argument(
        "--epsilon", type=between(0, 64), default=DERIVED_EPSILON, metavar="E", help="default: %(default)g"
    )
    parser.add_argument(
        "--bins", type=at_least(2), default=DEFAULT_BINS, metavar="N", help="of every number (default: %(default)s)"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the draft there instead of printing it")
    parser.add_argument(
        "--json", action="store_true", help="print one object with the draft, notes and left-out columns"
    )


def _run(options: argparse.Namespace) -> None:
    table = read_text_table(options.data)
    derived = draft_from_table(table, options.label, source=options.data, epsilon=options.epsilon, bins=options.bins)
    if options.output:
        try:
            options.output.write_text(json.dumps(derived.draft, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise TableError(f"{options.output}: cannot be written ({error.strerror})") from None
    if options.json:
        say_json({"draft": derived.draft, "notes": derived.notes, "left_out": derived.left_out})
        return
    if not options.output:
        say_json(derived.draft)
    warn("BEFORE ANYONE IS ASKED, replace by public knowledge what was read off the data:")
    for note in derived.notes:
        warn(f"  {note}")
