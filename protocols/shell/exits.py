"""How all commands end: one table for the programs, every ``--help``, the documentation and its test."""

from __future__ import annotations

from typing import Final

DONE: Final = 0
FAILED: Final = 1
WRONG_USAGE: Final = 2
INTERRUPTED: Final = 130
"""What a shell reports of a program that Ctrl-C ended: 128 and the signal's number."""

MEANINGS: Final = {
    DONE: "done",
    FAILED: "it failed, or what was checked does not hold",
    WRONG_USAGE: "the command line or a setting is wrong, or a library is missing: nothing was begun",
    INTERRUPTED: "ended by Ctrl-C",
}
