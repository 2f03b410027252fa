"""The program: all groups of commands under one parser, the options of the store, and one way to fail."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from ldp_aggregator.cli.common import ABOUT, CommandError, add_store_options
from ldp_aggregator.store.contract import UNKNOWN
from protocols import LdpError
from protocols.shell import Parser, add_completion, add_version, parsers_under, refuse_gone, run_command

NAME: Final = "ldp-aggregator"

MODULES: Final = {
    "operation.quickstart": ("quickstart",),
    "operation.serve": ("serve",),
    "campaigns.campaign": ("campaign",),
    "campaigns.models": ("estimates", "train", "evaluate"),
    "tables": ("fit", "node", "project"),
    "operation.rights": ("token", "key"),
    "operation.maintenance": ("status", "fsck", "merge", "backup", "restore"),
    "audit": ("audit",),
}
"""The modules in this package, each with its commands. Only the module of the one that is asked for is imported: some
bring libraries that take seconds and memory, and serving needs neither."""

_IN_PYTHON: Final = "is gone: it is a parameter of the trainer in Python (docs/trainers.md)"
_PROJECTED: Final = "is gone: it is a parameter of fit_projection in Python"

GONE: Final = {
    "campaign reopen": "is 'campaign close --undo' now",
    "campaign seal": "is 'campaign close --seal' now, and --now is --seal-now",
    **{f"fit {method}": f"is 'fit --method {method}' now" for method in ("global", "smooth", "sums", "federated")},
    "fit kmeans": "is 'fit --method kmeans' now",
    **{f"fit --{flag}": _IN_PYTHON for flag in ("variant", "groups", "numerical-share", "variance-floor")},
    **{f"fit --{flag}": _IN_PYTHON for flag in ("iterations", "split")},
    "node statistics": "is 'node submit' now, which sends nothing without --url",
    "node send": "is 'node submit --url' now",
    "project fit": "is 'project' now",
    **{f"project --{flag}": _PROJECTED for flag in ("ridge", "signal-ridge", "spread")},
    "recount": "is 'fsck --archive' now, which compares unless --count-only is there",
    "key show": "is 'key create' now, which prints the public key of a key that is there",
    "serve --tls-certificate": "is the setting tls_certificate now",
    "serve --tls-key": "is the setting tls_key now",
    "token rotate": "is 'token create --in-place-of' now",
    "log": "is 'status --log' now",
    "train --prior": "is gone: the prior is told by every question",
    "train --variance-floor": "is gone: it is a parameter of train in Python",
    "evaluate --title": "is gone: the title stands in the draft",
}
"""Commands and flags of before, and what is in their place."""


def make_parser(command: str | None = None, *, listed: bool = False) -> Parser:
    """Return the parser of one command, or of all where it is not one of :data:`ABOUT`; ``listed``: with nothing but
    their names. :func:`parse` takes the options of the store away before.
    """
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
            if command in ABOUT or (error.name or "").partition(".")[0] in ("ldp_aggregator", "protocols"):
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
    refuse_gone(store, words, GONE)
    command = words[0] if words else None
    # Without a command it can only be for help, or wrong.
    chosen = make_parser(command, listed=command not in ABOUT).parse_args(words, argparse.Namespace(**vars(given)))
    if vars(given) and not chosen.opens_store:
        named = " and ".join(f"--{name}" for name in vars(given))
        chosen.mistake(f"no store is opened; leave out {named}")
    return chosen


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; what is wrong is one line on standard error. Returns a code of :mod:`protocols.shell`."""
    chosen = parse(sys.argv[1:] if arguments is None else arguments)
    return run_command(
        NAME,
        lambda: chosen.command(chosen),
        wrong=(LdpError, argparse.ArgumentTypeError),
        failed=(CommandError, LdpError),
        tell=_told,
    )


def _told(error: Exception) -> str:
    unknown = isinstance(error, LdpError) and error.code == UNKNOWN
    return f"{error}; '{NAME} campaign list' shows the ids of this store" if unknown else str(error)
