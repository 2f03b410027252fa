"""Prints the help of every command of the five programs, as a part of a page."""

from __future__ import annotations

import os
import sys

os.environ["COLUMNS"] = "86"

from ldp_aggregator.cli.program import make_parser as aggregator_parser
from ldp_aggregator.issuer.__main__ import make_parser as issuer_parser
from ldp_aggregator.relay.__main__ import make_parser as relay_parser
from ldp_client.__main__ import make_parser as client_parser
from ldp_protocols.command_line import parsers_under
from ldp_simulations.__main__ import make_parser as simulations_parser

FOLDED = '<details markdown="1"><summary>Arguments and examples</summary>'
"""The help of a command is behind a click: a page of all would be forty screens long."""


def main() -> None:
    for make in (aggregator_parser, client_parser, simulations_parser, issuer_parser, relay_parser):
        for depth, parser in enumerate(parsers_under(make())):
            level = "##" if depth == 0 else "###"
            sys.stdout.write(f"{level} `{parser.prog}`\n\n{(parser.description or '').strip()}\n\n")
            sys.stdout.write(f"{FOLDED}\n\n```text\n{parser.format_help().rstrip()}\n```\n\n</details>\n\n")


if __name__ == "__main__":
    main()
