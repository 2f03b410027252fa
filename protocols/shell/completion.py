"""``--completion SHELL``: a script that completes the program's commands and options on TAB."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from protocols.shell.exits import DONE, WRONG_USAGE

SHELLS: Final = ("bash", "zsh", "fish")


def add_completion(parser: argparse.ArgumentParser, make_parser: Callable[[], argparse.ArgumentParser]) -> None:
    """Add the option. The script is of the parser that ``make_parser`` gives, whose ``prog`` is what is completed."""

    class Completion(argparse.Action):
        def __call__(self, parser: argparse.ArgumentParser, _: object, shell: Any, __: object = None) -> None:
            try:
                import shtab
            except ModuleNotFoundError:
                parser.exit(WRONG_USAGE, f"{parser.prog}: needs shtab: pip install 'ldp-bayes[completion]'\n")
            completed = make_parser()
            for action in _actions(completed):
                if action.type is Path:
                    action.complete = shtab.FILE  # type: ignore[attr-defined]  # where shtab looks for it
            sys.stdout.write(shtab.complete(completed, shell).rstrip() + "\n")
            parser.exit(DONE)

    parser.add_argument(
        "--completion", action=Completion, choices=SHELLS, help="print a script for the shell to complete commands with"
    )


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for one in action.choices.values():
                yield from _actions(one)
