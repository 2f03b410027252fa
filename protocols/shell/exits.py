"""How the commands end; ``docs/deployment.md`` has the same table for those who write scripts."""

from __future__ import annotations

from typing import Final

DONE: Final = 0
FAILED: Final = 1
WRONG_USAGE: Final = 2
INTERRUPTED: Final = 130
"""What a shell reports of a program that Ctrl-C ended: 128 and the signal's number."""
