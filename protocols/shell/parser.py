"""The parser of every command: its help ends with examples, its mistakes are one line, an id is never an option."""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from protocols.shell.exits import MEANINGS, WRONG_USAGE

EXAMPLES: Final = "examples:"
EXIT_CODES: Final = "exit codes:"
_WIDTH: Final = 100
_LIKE_AN_ID: Final = re.compile(r"-[A-Za-z0-9_-]{42}(=.*)?", re.DOTALL)
"""Ids, tokens and public keys are 43 characters of base64url, of which one in 64 begins with a dash; ``key sign`` takes
``ID=MODEL.json``, too. No option is that long."""


class Parser(argparse.ArgumentParser):
    """``examples`` are what may follow the command's name, each on a line of its own, behind the exit codes and at the
    end of ``--help``.

    A wrong command line is told in one line, like every other mistake; ``--help`` says the rest.
    """

    def __init__(self, *, examples: Sequence[str] = (), **options: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **options)
        if self.description and "\n" not in self.description:
            self.description = textwrap.fill(self.description, _WIDTH)
        if examples:
            codes = [f"  {code:<3}  {meaning}" for code, meaning in MEANINGS.items()]
            shown = [f"  {self.prog} {example}" for example in examples]
            self.epilog = "\n".join([EXIT_CODES, *codes, "", EXAMPLES, *shown])

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """What a command does not know is told by that command, whose ``--help`` says what it knows."""
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG_USAGE, f"{self.prog}: {message}; see {self.prog} --help\n")

    def _parse_optional(self, arg_string: str) -> Any:
        """argparse has no public way to say that what begins with a dash may be a value; None says so."""
        return None if _LIKE_AN_ID.fullmatch(arg_string) else super()._parse_optional(arg_string)
