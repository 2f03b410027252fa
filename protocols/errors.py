"""Errors both sides share: what was wrong, where, and what would be right.

Every error carries a stable ``code`` (kebab-case) that survives rewording of its message: a server puts it into a
problem document, a client into its status, a test asserts it.
"""

from __future__ import annotations

from typing import Final


class LdpError(Exception):
    """Base of everything that ``protocols`` and ``ldp_client`` raise on purpose: one ``except`` catches it all."""

    code: str = "error"


class ProtocolError(LdpError, ValueError):
    """Base of everything this package raises about its input."""

    code = "protocol-error"


class NotInstalledError(LdpError, ImportError):
    """A part that this installation lacks: the small wheel for devices leaves out what a device never runs."""

    code = "not-installed"


class DraftError(ProtocolError):
    """A draft that cannot be compiled. ``field`` names the place (``features[2].low``)."""

    code = "invalid-draft"

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class DocumentError(ProtocolError):
    """Document bytes that are not a campaign this version can trust."""

    def __init__(self, code: str, problem: str) -> None:
        super().__init__(problem)
        self.code = code


class RecordError(ProtocolError):
    """A record that may not be answered for; nothing of it has been read when this is raised.

    ``code`` is ``undeclared-label``, or ``not-a-record`` for what is no mapping of names to values.
    """

    code = "undeclared-label"

    def __init__(self, problem: str, code: str = code) -> None:
        super().__init__(problem)
        self.code = code


class SecretError(ProtocolError):
    """A device secret that is none: of another length, all devices' questions and ids could be alike."""

    code = "invalid-secret"


class ModelError(ProtocolError):
    """A model document that does not describe a Naive Bayes model."""

    code = "invalid-model"


class UploadError(ProtocolError):
    """Bytes that are not the one valid encoding of an upload; nothing in them is counted."""

    code = "malformed-upload"


class PayloadError(ProtocolError):
    """One report whose payload no device can have sent. ``code`` is one of :data:`PAYLOAD_CODES`."""

    def __init__(self, code: str) -> None:
        super().__init__(PAYLOAD_CODES[code])
        self.code = code


PAYLOAD_CODES: Final = {
    "index-out-of-range": "the index is not below the question's domain size",
    "padding-bits-set": "bits beyond the question's domain size must be zero",
    "wrong-subset-size": "a subset report sets exactly w bits",
    "value-out-of-range": "a cell is beyond what the question's noise can reach",
    "bit-out-of-range": "the last byte of a one-bit report is 0 or 1",
}
"""Why a single well-framed report is refused; the rest of its upload is still counted."""
