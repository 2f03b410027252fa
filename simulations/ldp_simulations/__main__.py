"""The command ``ldp-simulate``: experiments with populations of devices, before anyone is asked."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from ldp_protocols import LdpError
from ldp_protocols.command_line import Parser, add_version, run_command

PROGRAM: Final = "ldp-simulate"
COMMANDS: Final = {
    "demo": ("demo", "the whole flow: aggregator, devices, model, classification on a device"),
    "population": ("tables", "devices answer over real HTTP; prints what arrived and how good the model is"),
    "accuracy": ("tables", "simulate a campaign on a table; prints accuracies with standard errors"),
    "plan": ("plan", "standard errors and devices needed, from a draft; prints a table"),
    "series": ("series", "one loss for life over many windows: prints the errors of every way to spend it"),
    "draft": ("tables", "derive a draft from a table; prints it, and what in it must be replaced"),
    "data": ("data", "the benchmarks' tables: check a folder of them"),
    "reproduce": (
        "reproduce",
        "reproduce a figure of the papers; writes a table, plots and a page, and prints their paths",
    ),
}
"""Each command's module in ``ldp_simulations.commands``, and its help. Only the module of the one that is asked for is
imported: with what they compute with, they take seconds."""


def make_parser(words: Sequence[str] | None = None) -> Parser:
    """The parser of all commands; for a command line that of its own, with nothing but the others' names."""
    parser = Parser(
        prog=PROGRAM,
        description="Experiments with populations of devices, before anyone is asked.",
        examples=("demo", "plan --schema draft.toml --devices 100000"),
    )
    add_version(parser)
    groups = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    command = next((word for word in words or () if not word.startswith("-")), None)
    for name, (module, text) in COMMANDS.items():
        if words is None or name == command:
            getattr(import_module(f"ldp_simulations.commands.{module}"), f"add_{name}")(groups, text)
        else:
            groups.add_parser(name, help=text)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; what is wrong is one line on standard error. Returns an exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    options = make_parser(words).parse_args(words)
    from ldp_aggregator.trainers.reading import TableError  # Here, as the commands are.

    return run_command(
        PROGRAM,
        lambda: options.command(options),
        wrong=(argparse.ArgumentTypeError, LdpError),
        failed=(LdpError, TableError),
    )


if __name__ == "__main__":
    sys.exit(main())
