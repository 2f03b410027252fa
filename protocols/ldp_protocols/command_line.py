"""The parser, exit codes, manners and completion scripts of the five command lines.

Every help ends with exit codes and examples, a mistake is one line, an id is never an option.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from ldp_protocols.names import DISTRIBUTION

DONE: Final = 0
FAILED: Final = 1
WRONG_USAGE: Final = 2
INTERRUPTED: Final = 130
"""The code that a shell reports of a program that Ctrl-C ended: 128 and the signal's number."""

MEANINGS: Final = {
    DONE: "done",
    FAILED: "it failed, or what was checked does not hold",
    WRONG_USAGE: "the command line or a setting is wrong, or a library is missing: nothing was begun",
    INTERRUPTED: "ended by Ctrl-C",
}

EXAMPLES: Final = "examples:"
EXIT_CODES: Final = "exit codes:"
_WIDTH: Final = 100
_LIKE_AN_ID: Final = re.compile(r"-[A-Za-z0-9_-]{42}(=.*)?", re.DOTALL)
"""Ids, tokens and public keys are 43 characters of base64url, of which one in 64 begins with a dash; ``key sign`` takes
``ID=MODEL.json``, too. No option is that long."""
SHELLS: Final = ("bash", "zsh", "fish")


class Parser(argparse.ArgumentParser):
    """``examples`` are what may follow the command's name, each on a line of its own, behind the exit codes and at the
    end of ``--help``; ``note`` stands before them.

    A wrong command line is told in one line, like every other mistake; ``--help`` says the rest.
    """

    def __init__(self, *, examples: Sequence[str] = (), note: str = "", **options: Any) -> None:
        formatter = argparse.RawDescriptionHelpFormatter
        # An abbreviation means something else, or two things, as soon as there is another option.
        super().__init__(formatter_class=formatter, allow_abbrev=False, **options)
        if self.description and "\n" not in self.description:
            self.description = textwrap.fill(self.description, _WIDTH)
        if examples:
            codes = [f"  {code:<3}  {meaning}" for code, meaning in MEANINGS.items()]
            lines = [f"  {self.prog} {example}".rstrip() for example in examples]
            self.epilog = "\n".join([*([note, ""] if note else []), EXIT_CODES, *codes, "", EXAMPLES, *lines])

    def take(self, words: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
        """Parse what this parser knows, wherever it stands; returns that, and the other words in their order."""
        return super().parse_known_args(words)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Have each command tell what it does not know, whose ``--help`` says what it knows."""
        namespace_, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return namespace_, unknown

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG_USAGE, f"{self.prog}: {message}; see {self.prog} --help\n")

    def _parse_optional(self, arg_string: str) -> Any:
        """argparse has no public way to say that what begins with a dash may be a value; None says so."""
        return None if _LIKE_AN_ID.fullmatch(arg_string) else super()._parse_optional(arg_string)


if TYPE_CHECKING:
    Groups = argparse._SubParsersAction[Parser]
else:
    Groups = Any
"""The place in a parser that takes the commands under it."""


def run_command(
    name: str,
    command: Callable[[], int | None],
    *,
    wrong: tuple[type[Exception], ...],
    failed: tuple[type[Exception], ...],
    tell: Callable[[Exception], str] = str,
) -> int:
    """Run a command; an error of these types is one line on standard error. Returns an exit code, that of ``wrong`` for
    exactly its types: LdpError is also the base of what fails.
    """
    try:
        return command() or DONE
    except BrokenPipeError:
        # Whoever read our output has seen enough; the interpreter must not complain about it when it flushes.
        sys.stdout = None
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except (*wrong, *failed) as error:
        sys.stderr.write(f"{name}: {tell(error)}\n")
        return WRONG_USAGE if type(error) in wrong else FAILED


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
    right = f"a number above {least:g} and below {most:g}" if most < math.inf else f"a finite number above {least:g}"

    def parse(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = least
        if not least < number < most:
            raise argparse.ArgumentTypeError(f"must be {right}, not {text!r}")
        return number

    return parse


def place(text: str) -> tuple[str, int]:
    """The type of a flag that takes a port on loopback, or HOST:PORT."""
    host, _, port = text.rpartition(":")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(between(-1, 65536)(port))


def say(text: str = "") -> None:
    """A line of output, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def warn(text: str) -> None:
    """A line that must be read, and must not get into the result."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def say_json(value: Any) -> None:
    """A JSON document, as output."""
    say(json.dumps(value, ensure_ascii=False, indent=2))


def add_json(parser: Any) -> None:
    """Add the flag for programs that read what is printed."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_version(parser: argparse.ArgumentParser) -> None:
    """Add ``--version``, the first question of every report of a bug."""

    class Version(argparse.Action):
        def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
            import platform
            from importlib.metadata import version

            say(f"{parser.prog} {version(DISTRIBUTION)} (Python {platform.python_version()})")
            parser.exit(DONE)

    parser.add_argument("--version", action=Version, nargs=0, help="print the version and exit")


def add_completion(parser: argparse.ArgumentParser, make_parser: Callable[[], argparse.ArgumentParser]) -> None:
    """Add ``--completion SHELL``, which prints the TAB completion of the commands and options of ``make_parser``."""

    class Completion(argparse.Action):
        def __call__(self, parser: argparse.ArgumentParser, _: object, shell: Any, __: object = None) -> None:
            try:
                import shtab
            except ModuleNotFoundError:
                parser.exit(WRONG_USAGE, f"{parser.prog}: needs shtab: pip install 'ldp-bayes[completion]'\n")
            completed = make_parser()
            for action in (action for one in parsers_under(completed) for action in one._actions):
                if action.type is Path:
                    action.complete = shtab.FILE  # type: ignore[attr-defined]  # where shtab looks for it
            sys.stdout.write(shtab.complete(completed, shell).rstrip() + "\n")
            parser.exit(DONE)

    parser.add_argument(
        "--completion", action=Completion, choices=SHELLS, help="print a script for the shell to complete commands with"
    )


def parsers_under(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser, and those of its commands, as ``--help`` lists them."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for one in action.choices.values():
                yield from parsers_under(one)
