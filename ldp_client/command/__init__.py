"""The client from a shell: ``ldp-client contribute|predict|status|withdraw|relay``, also ``python -m ldp_client``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ldp_client.command import device, relay
from ldp_client.errors import ConfigurationError
from protocols.errors import LdpError
from protocols.shell import FAILED, INTERRUPTED, WRONG_USAGE, Parser, add_completion

MODULE: Final = "python -m ldp_client"
SCRIPT: Final = "ldp-client"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; what is wrong is one line on standard error. Returns a code of :mod:`protocols.shell`."""
    name = SCRIPT if Path(sys.argv[0]).stem == SCRIPT else MODULE
    options = make_parser(name).parse_args(arguments)
    try:
        result: int = options.run(options)
    except (LdpError, OSError) as error:
        print(f"ldp_client: {error}", file=sys.stderr)
        wrong = isinstance(error, ConfigurationError) and error.code != device.BAD_INPUT
        return WRONG_USAGE if wrong else FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return result


def make_parser(name: str = MODULE) -> Parser:
    parser = Parser(
        prog=name,
        description="Answer a campaign under local differential privacy, and classify with the model it gives.",
        examples=("contribute https://collect.example.org ID --storage device.db --record-file record.json",),
    )
    add_completion(parser, lambda: make_parser(SCRIPT))
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    device.add_commands(commands)
    relay.add_command(commands)
    return parser
