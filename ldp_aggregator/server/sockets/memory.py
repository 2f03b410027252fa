"""The bytes that waiting uploads and unread answers may hold: the bound of the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ldp_aggregator.server.sockets.connections import Connection


class Memory:
    """``most`` bytes for what clients send and what they do not read. Who does not read holds up nobody: where room is
    needed, the one who has not read for longest loses the connection.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.held = 0
        """Bytes held now."""
        self._unread: dict[Connection, int] = {}

    def take(self, size: int) -> bool:
        """Hold so many more bytes; False where there is no room for them."""
        while self.held + size > self._most:
            if not self._unread:
                return False
            reader = next(iter(self._unread))
            self.read(reader)
            reader.cut()
        self.held += size
        return True

    def give(self, size: int) -> None:
        """Give room back."""
        self.held -= size

    def wait_for(self, reader: Connection, size: int) -> None:
        """An answer of which so many bytes are not read. They are there already, so it may be this reader who goes."""
        self._unread[reader] = size
        self.held += size
        self.take(0)

    def read(self, reader: Connection) -> None:
        """The answer was read, or never will be."""
        self.held -= self._unread.pop(reader, 0)
