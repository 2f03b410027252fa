"""Prints the help of every command of the three programs, as a part of a page."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator

os.environ["COLUMNS"] = "86"

from ldp_aggregator.cli.program import make_parser as aggregator_parser
from ldp_client.command import make_parser as client_parser
from simulations.__main__ import make_parser as simulations_parser


def parsers_under(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for one in action.choices.values():
                yield from parsers_under(one)


def main() -> None:
    for make in (aggregator_parser, client_parser, simulations_parser):
        for depth, parser in enumerate(parsers_under(make())):
            level = "##" if depth == 0 else "###"
            sys.stdout.write(f"{level} `{parser.prog}`\n\n```text\n{parser.format_help().rstrip()}\n```\n\n")


if __name__ == "__main__":
    main()
