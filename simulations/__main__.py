"""``python -m simulations``: experiments with populations of devices, before anyone is asked."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from protocols import ProtocolError
from protocols.errors import NotInstalledError
from protocols.shell import DONE, FAILED, INTERRUPTED, WRONG_USAGE, Parser
from simulations.commands import accuracy, demo, draft, evaluate, plan, population, reproduce
from simulations.fleet.aggregator import FleetError
from simulations.tables.frames import TableError

PROGRAM: Final = "python -m simulations"
COMMANDS: Final = (demo, population, accuracy, evaluate, plan, draft, reproduce)

_REPORTED: Final = (ProtocolError, FleetError, TableError)
_WRONG: Final = (argparse.ArgumentTypeError, NotInstalledError)


def make_parser() -> Parser:
    parser = Parser(
        prog=PROGRAM,
        description="Experiments with populations of devices, before anyone is asked.",
        examples=("demo", "plan --schema draft.toml --devices 100000"),
    )
    groups = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in COMMANDS:
        module.add_command(groups)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; what is wrong is one line on standard error. Returns a code of :mod:`protocols.shell`."""
    options = make_parser().parse_args(arguments)
    try:
        options.command(options)
    except _WRONG as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return WRONG_USAGE
    except _REPORTED as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return DONE


if __name__ == "__main__":
    sys.exit(main())
