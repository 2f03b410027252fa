"""The common part of the commands: their parser, their flags, and one line for every failure."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from simulations.tables.frames import TABLE_HELP
from simulations.tables.sources import Source, source_with_schema, source_without_schema

DERIVED_EPSILON: Final = 1.0
"""The total loss in a draft that is derived from a table, unless a flag says otherwise."""


def add_table_options(parser: argparse.ArgumentParser) -> None:
    """The people and the campaign: ``--data`` with ``--schema`` or ``--label``; see :func:`source_of`."""
    table = parser.add_argument_group("people and campaign")
    table.add_argument("--data", required=True, metavar="TABLE", help=TABLE_HELP)
    table.add_argument("--schema", type=Path, metavar="DRAFT", help="the campaign's draft, .json or .toml")
    table.add_argument("--label", metavar="COLUMN", help="instead of --schema: learn this column, derive the draft")


def source_of(options: argparse.Namespace) -> Source:
    """The people and the draft that :func:`add_table_options` names. Raises TableError or DraftError."""
    if (options.schema is None) == (options.label is None):
        raise argparse.ArgumentTypeError("give either --schema DRAFT or --label COLUMN")
    if options.schema is None:
        return source_without_schema(options.data, options.label, epsilon=DERIVED_EPSILON)
    return source_with_schema(options.data, options.schema)


def warn(text: str) -> None:
    """A line that must be read, and must not get into the result."""
    print(text, file=sys.stderr, flush=True)
