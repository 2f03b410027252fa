"""The client from a shell: ``python -m ldp_client contribute|predict|status|withdraw|relay``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from ldp_client.command import device, relay
from protocols.errors import LdpError
from protocols.shell.exits import INTERRUPTED
from protocols.shell.parser import Parser

FAILED: Final = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0, or 2 after a one-line message on standard error, or 130 after Ctrl-C."""
    options = make_parser().parse_args(arguments)
    try:
        result: int = options.run(options)
    except (LdpError, OSError) as error:
        print(f"ldp_client: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return result


def make_parser() -> Parser:
    parser = Parser(
        prog="python -m ldp_client",
        description="Answer a campaign under local differential privacy, and classify with the model it gives.",
        examples=("contribute https://collect.example.org ID --storage device.db --record-file record.json",),
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    device.add_commands(commands)
    relay.add_command(commands)
    return parser
