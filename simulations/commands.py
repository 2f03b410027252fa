"""What the commands share: their parser, their flags, and one line for every failure."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    Groups = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Groups = Any


class Parser(argparse.ArgumentParser):
    """A wrong command line is told in one line, like every other mistake; ``--help`` says the rest."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def at_least(least: int) -> Callable[[str], int]:
    """The type of a flag that takes whole numbers from ``least`` on."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"must be a whole number of at least {least}, not {text!r}")
        return number

    return parse


def between(least: float, most: float) -> Callable[[str], float]:
    """The type of a flag that takes numbers strictly between two."""

    def parse(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = least
        if not least < number < most:
            raise argparse.ArgumentTypeError(f"must be a number above {least:g} and below {most:g}, not {text!r}")
        return number

    return parse


def say(text: str = "") -> None:
    """A line of the result."""
    print(text, flush=True)


def say_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2), flush=True)


def warn(text: str) -> None:
    """A line that must be read, and must not get into the result."""
    print(text, file=sys.stderr, flush=True)
