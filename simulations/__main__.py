"""``python -m simulations``: experiments with populations of devices, before anyone is asked."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from protocols import ProtocolError
from protocols.errors import NotInstalledError
from protocols.shell import Parser, add_version, refuse_gone, run_command
from simulations.commands import accuracy, demo, draft, plan, population, reproduce
from simulations.fleet.aggregator import FleetError
from simulations.tables.frames import TableError

PROGRAM: Final = "python -m simulations"
COMMANDS: Final = (demo, population, accuracy, plan, draft, reproduce)

_QUIET: Final = "is gone: progress is for terminals only"
_USUAL: Final = "is gone: what it was without it is what it is now"

GONE: Final = {
    "evaluate": "is 'accuracy --evaluating' now",
    **{f"{command} --quiet": _QUIET for command in ("demo", "population", "accuracy", "reproduce")},
    "population --token": "is the variable LDP_BAYES_ADMIN_TOKEN now: other users of a machine read command lines",
    "population --lie": "is '--target CLASS' now, and a random person's answer without it",
    **{f"population --{flag}": _USUAL for flag in ("train-fraction", "threads", "repeats", "arrivals")},
    **{f"accuracy --{flag}": _USUAL for flag in ("train-fraction", "post", "fidelity", "per-question-epsilon")},
    "accuracy --answers": "is gone: the draft says it",
    "accuracy --plot": "is gone: examples/notebooks/choose_epsilon.ipynb draws it",
    **{f"plan --{flag}": _USUAL for flag in ("delta", "repeats", "seed", "plot")},
}
"""Commands and flags of before, and what is in their place."""


def make_parser() -> Parser:
    parser = Parser(
        prog=PROGRAM,
        description="Experiments with populations of devices, before anyone is asked.",
        examples=("demo", "plan --schema draft.toml --devices 100000"),
    )
    add_version(parser)
    groups = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in COMMANDS:
        module.add_command(groups)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; what is wrong is one line on standard error. Returns a code of :mod:`protocols.shell`."""
    parser, words = make_parser(), sys.argv[1:] if arguments is None else arguments
    refuse_gone(parser, words, GONE)
    options = parser.parse_args(words)
    return run_command(
        PROGRAM,
        lambda: options.command(options),
        wrong=(argparse.ArgumentTypeError, NotInstalledError),
        failed=(ProtocolError, FleetError, TableError),
    )


if __name__ == "__main__":
    sys.exit(main())
