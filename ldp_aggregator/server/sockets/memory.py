"""What a process holds of its clients' bytes, in one budget: what they send and what they do not read."""

from __future__ import annotations

from typing import Protocol


class Reader(Protocol):
    """Who has not read an answer."""

    def cut(self) -> None: ...


class Memory:
    """``most`` bytes. Who does not read holds up nobody: where room is needed, the one who has not read for longest
    loses the connection.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0
        self._unread: dict[Reader, int] = {}

    @property
    def held(self) -> int:
        """Bytes held now."""
        return self._held

    def take(self, size: int) -> bool:
        """Whether there is room for so many more bytes; where there is, they are held."""
        while self._held + size > self._most:
            if not self._unread:
                return False
            self.drop(next(iter(self._unread)))
        self._held += size
        return True

    def give(self, size: int) -> None:
        """Give room back."""
        self._held -= size

    def wait_for(self, reader: Reader, size: int) -> None:
        """An answer of which so many bytes are not read. They are there already, so it may be this reader who goes."""
        self._unread[reader] = size
        self._held += size
        self.take(0)

    def drop(self, reader: Reader) -> None:
        """End the connection of one who does not read."""
        self.read(reader)
        reader.cut()

    def read(self, reader: Reader) -> None:
        """The answer was read, or never will be."""
        self._held -= self._unread.pop(reader, 0)
