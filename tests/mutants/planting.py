"""A bug at one place of a file."""

import difflib
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """``new`` in place of what stands from ``start`` to ``end`` in the text of a file.

    path
        The file, relative to the checkout.
    line
        The line of ``start``, counted from 1.
    kind
        The sort of change, in two words.
    function
        The qualified name of the Python function around it; empty outside of one, and in other languages.
    """

    path: str
    line: int
    kind: str
    start: int
    end: int
    new: str
    function: str = ""

    @property
    def name(self) -> str:
        """One word that no other mutant of the same sources has."""
        return f"{self.path}:{self.line}:{self.start}-{self.end}:{self.kind.replace(' ', '-')}:{self.new!r}"

    def planted(self, text: str) -> str:
        """The text with the bug."""
        return text[: self.start] + self.new + text[self.end :]

    def diff(self, text: str) -> str:
        """The lines that differ, as a unified diff without its head."""
        lines = difflib.unified_diff(text.splitlines(), self.planted(text).splitlines(), lineterm="", n=0)
        return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))
