"""The errors of both sides: each type means a different thing to do, and its ``code`` tells the cases apart.

A ``code`` (kebab-case) survives rewording of the message: a server puts it into a problem document, a client into its
status, a test asserts it.
"""

from __future__ import annotations

from typing import Final


class LdpError(Exception):
    """Base of every error with a ``code``; itself for a wrong argument or setting, or a library ``not-installed``."""

    def __init__(self, code: str, problem: str) -> None:
        # Without Exception's own: ``args`` stays as it was given, so that every subclass can be pickled.
        self.code = code
        self._text = problem

    def __str__(self) -> str:
        return self._text


class DraftError(LdpError, ValueError):
    """A draft that cannot be compiled: its author mends the ``field`` (``features[2].low``)."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__("invalid-draft", f"{field}: {problem}")
        self.field = field
        self.problem = problem


class DocumentError(LdpError, ValueError):
    """Bytes that are not what they were said to be: a campaign, a directory, a model (``invalid-model``), an upload
    (``malformed-upload``), a share (``malformed-share``), or a payload (:data:`PAYLOAD_CODES`). Nothing is taken.
    """


class RecordError(LdpError, ValueError):
    """A record that may not be answered, and was not read: ``undeclared-label``, or ``not-a-record`` (no mapping)."""

    def __init__(self, problem: str, code: str = "undeclared-label") -> None:
        super().__init__(code, problem)


PAYLOAD_CODES: Final = {
    "index-out-of-range": "the index is not below the question's domain size",
    "padding-bits-set": "bits beyond the question's domain size must be zero",
    "wrong-subset-size": "a subset report sets exactly w bits",
    "value-out-of-range": "a cell is beyond what the question's noise can reach",
    "bit-out-of-range": "the last byte of a one-bit report is 0 or 1",
}
"""Why a single well-framed report is refused; the rest of its upload is still counted."""


def payload_error(code: str) -> DocumentError:
    """One report whose payload no device can have sent; ``code`` is one of :data:`PAYLOAD_CODES`."""
    return DocumentError(code, PAYLOAD_CODES[code])
