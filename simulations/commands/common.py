"""The common part of the commands: their parser, their flags, and one line for every failure."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from protocols.shell import Parser
from simulations.tables.frames import TableError
from simulations.tables.loaders import TABLE_HELP
from simulations.tables.sources import Source, source_with_schema, source_without_schema

if TYPE_CHECKING:
    Groups = argparse._SubParsersAction[Parser]
else:
    Groups = Any


STANDARD_OUTPUT: Final = "-"
DERIVED_EPSILON: Final = 1.0
"""The total loss in a draft that is derived from a table, unless a flag says otherwise."""


def at_least(least: int) -> Callable[[str], int]:
    """The type of a flag that takes whole numbers from ``least`` on."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"must be a whole number of at least {least}, not {text!r}")
        return number

    return parse


def between(least: float, most: float) -> Callable[[str], float]:
    """The type of a flag that takes numbers strictly between two."""

    def parse(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = least
        if not least < number < most:
            raise argparse.ArgumentTypeError(f"must be a number above {least:g} and below {most:g}, not {text!r}")
        return number

    return parse


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


def add_json(parser: argparse.ArgumentParser) -> None:
    """``--json``, alone or with a file."""
    parser.add_argument(
        "--json",
        nargs="?",
        const=STANDARD_OUTPUT,
        metavar="FILE",
        help="give one JSON object, on standard output or in a file",
    )


def give_json(value: Any, place: str) -> None:
    """Print a JSON document, or write it to a file."""
    if place == STANDARD_OUTPUT:
        say_json(value)
        return
    try:
        Path(place).write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise TableError(f"{place}: cannot be written ({error.strerror})") from None


def say(text: str = "") -> None:
    """A line of the result."""
    print(text, flush=True)


def say_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2), flush=True)


def warn(text: str) -> None:
    """A line that must be read, and must not get into the result."""
    print(text, file=sys.stderr, flush=True)
