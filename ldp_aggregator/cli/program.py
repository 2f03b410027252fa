"""The program: all groups of commands under one parser, the options of the store, and one way to fail."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from ldp_aggregator.cli.common import ABOUT, CommandError, add_store_options, complete_ids
from ldp_aggregator.store.contract import UNKNOWN
from ldp_protocols import LdpError
from ldp_protocols.command_line import Parser, add_completion, add_version, parsers_under, run_command

NAME: Final = "ldp-aggregator"

MODULES: Final = {
    "serving": ("quickstart", "serve"),
    "campaign": ("campaign",),
    "models": ("estimates", "train", "evaluate"),
    "tables": ("fit", "node", "project"),
    "rights": ("token", "key"),
    "maintenance": ("status", "fsck", "merge", "backup", "restore"),
    "audit": ("audit",),
}
"""The modules in this package, each with its commands. Only the module of the one that is asked for is imported: some
bring libraries that take seconds and memory, and serving needs neither."""


def make_parser(command: str | None = None, *, listed: bool = False) -> Parser:
    """Parser of a command, else of all; ``listed``: by name alone. :func:`parse` takes the store's options before."""
    parser = Parser(
        prog=NAME,
        description="Collects locally private reports, learns Naive Bayes models from them, publishes them.",
        examples=(
            "quickstart",
            "serve --data /var/lib/ldp-aggregator",
            "campaign create draft.toml",
            "train ID --output model.json",
        ),
    )
    add_version(parser)
    add_completion(parser, _completed)
    add_store_options(parser)
    groups = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    if listed:
        for name, text in ABOUT.items():
            groups.add_parser(name, help=text)
        return parser
    for module, names in MODULES.items():
        if command in ABOUT and command not in names:
            continue
        try:
            import_module(f"ldp_aggregator.cli.{module}").add_commands(groups)
        except ModuleNotFoundError as error:
            if command in ABOUT or (error.name or "").partition(".")[0] in ("ldp_aggregator", "ldp_protocols"):
                raise
            for name in names:
                groups.add_parser(name, help=f"needs {error.name}: pip install 'ldp-bayes[aggregator]'")
    return parser


def _completed() -> Parser:
    """All commands with the options of the store where they may stand: a shell's script asks one command at a time."""
    parser = make_parser()
    for one in parsers_under(parser):
        if one.get_default("opens_store") and one.prog != f"{NAME} serve":
            add_store_options(one)
    return parser


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Read a command line, in which the options of the store stand anywhere; ends where it is wrong."""
    store = Parser(prog=NAME, add_help=False)
    add_store_options(store)
    given, words = store.take(words)
    command = words[0] if words else None
    # Without a command it can only be for help, or wrong.
    chosen = make_parser(command, listed=command not in ABOUT).parse_args(words, argparse.Namespace(**vars(given)))
    if vars(given) and not chosen.opens_store:
        named = " and ".join(f"--{name}" for name in vars(given))
        chosen.mistake(f"no store is opened; leave out {named}")
    return chosen


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; what is wrong is one line on standard error. Returns an exit code."""
    chosen = parse(sys.argv[1:] if arguments is None else arguments)

    def command() -> int | None:
        if getattr(chosen, "opens_store", False):
            complete_ids(chosen)
        result: int | None = chosen.command(chosen)
        return result

    return run_command(
        NAME,
        command,
        wrong=(LdpError, argparse.ArgumentTypeError),
        failed=(CommandError, LdpError),
        tell=_told,
    )


def _told(error: Exception) -> str:
    unknown = isinstance(error, LdpError) and error.code == UNKNOWN
    return f"{error}; '{NAME} campaign list' shows the ids of this store" if unknown else str(error)
