"""The client from a shell: ``ldp-client contribute|predict|status|withdraw|relay``, also ``python -m ldp_client``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ldp_client.command import device, relay
from ldp_client.errors import ConfigurationError
from protocols.errors import LdpError
from protocols.shell import Parser, add_completion, add_version, refuse_gone, run_command

MODULE: Final = "python -m ldp_client"
SCRIPT: Final = "ldp-client"

_SPENDS_NOTHING: Final = "is gone: a withdrawal spends nothing"
GONE: Final = {"withdraw --max-epsilon": _SPENDS_NOTHING, "withdraw --max-total-epsilon": _SPENDS_NOTHING}
"""Flags of before, and why they are not needed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; what is wrong is one line on standard error. Returns a code of :mod:`protocols.shell`."""
    name = SCRIPT if Path(sys.argv[0]).stem == SCRIPT else MODULE
    parser, words = make_parser(name), sys.argv[1:] if arguments is None else arguments
    refuse_gone(parser, words, GONE)
    options = parser.parse_args(words)
    return run_command(
        "ldp_client", lambda: options.run(options), wrong=(ConfigurationError,), failed=(LdpError, OSError)
    )


def make_parser(name: str = MODULE) -> Parser:
    parser = Parser(
        prog=name,
        description="Answer a campaign under local differential privacy, and classify with the model it gives.",
        examples=("contribute https://collect.example.org ID --storage device.db --record-file record.json",),
    )
    add_version(parser)
    add_completion(parser, lambda: make_parser(SCRIPT))
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    device.add_commands(commands)
    relay.add_command(commands)
    return parser
