"""Where a device keeps what it must not forget: a small transactional map from text keys to bytes.

An app that has a store of its own implements :class:`Storage` and :class:`Transaction`; what is asked of it is little
(four operations, atomic commits), and everything that matters is written above it, once.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from protocols.light import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from typing import Final

MEMORY: Final = ":memory:"
SCOPES: Final = "scope/"
"""The keys of every scope start with this."""
WAITING: Final = "waiting/"
"""The keys of the index of queues, which is one for all scopes."""
MARK: Final = "mark"
"""The key of the mark by which a copy is recognised, one for all scopes."""

PUBLISHERS: Final = "publisher/"
"""The keys of what publishers have signed start with this; one for all scopes."""


class Transaction(Protocol):
    """What may be done inside one transaction."""

    def get(self, key: str) -> bytes | None:
        """The value, None where there is none."""

    def put(self, key: str, value: bytes) -> None:
        """Set the value."""

    def delete(self, key: str) -> None:
        """Remove the key; a missing one is no error."""

    def items(self, prefix: str, limit: int | None = None) -> list[tuple[str, bytes]]:
        """The first ``limit`` entries whose key starts with ``prefix``, by ascending key. Keys are ASCII."""


class Storage(Protocol):
    """A store of transactions."""

    def transaction(self, *, write: bool) -> AbstractContextManager[Transaction]:
        """A transaction, committed when the block ends and rolled back when it raises.

        With ``write`` it is alone: no other transaction, in this or another process, runs between its first read and
        its commit. When the block has ended without an exception, the changes survive a loss of power. Failures are
        raised as StorageError; so is the end of the seconds that the call has left
        (:func:`ldp_client.runtime.seconds_left`), where others have the storage.
        """
