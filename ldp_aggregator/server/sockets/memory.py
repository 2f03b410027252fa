"""The bytes that clients make a process hold: what has arrived and waits, and answers that they do not read."""

from __future__ import annotations

from typing import Protocol


class Client(Protocol):
    """A connection whose bytes are in memory."""

    is_stranger: bool
    """True if it has shown no token in use."""

    def give_way(self) -> None:
        """Drop what has come of requests that are not complete, and say so."""

    def cut(self) -> None:
        """End the connection now."""


class Memory:
    """``most`` bytes. What is charged is there: no client holds room by announcing bytes that it does not send.

    If room is needed, clients go that the server waits for: the one that has not read its answer for longest, then
    the one whose request has been incomplete for longest, and of these a stranger (without a token in use) first.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.used = 0
        """Bytes in use now."""
        self._unread: dict[Client, int] = {}
        self._unfinished: dict[Client, int] = {}

    def take(self, size: int) -> bool:
        """Hold so many more bytes of requests that are being answered; False if there is no room for them."""
        while self.used + size > self._most:
            if self._unread:
                reader = next(iter(self._unread))
                self.read(reader)
                reader.cut()
            elif self._unfinished:
                strangers = (sender for sender in self._unfinished if sender.is_stranger)
                sender = next(strangers, None) or next(iter(self._unfinished))
                self.note_unfinished(sender, 0)
                sender.give_way()
            else:
                return False
        self.used += size
        return True

    def give(self, size: int) -> None:
        """Free bytes that :meth:`take` took."""
        self.used -= size

    def note_unfinished(self, sender: Client, size: int) -> None:
        """So many bytes of this sender wait for the rest of their request. They are there already, so it may be this
        sender who goes.
        """
        self.used += size - self._unfinished.get(sender, 0)
        if size:
            self._unfinished[sender] = size
            self.take(0)
        else:
            self._unfinished.pop(sender, None)

    def note_unread(self, reader: Client, size: int) -> None:
        """An answer of which so many bytes are not read. They are there already, so it may be this reader who goes."""
        self._unread[reader] = size
        self.used += size
        self.take(0)

    def read(self, reader: Client) -> None:
        """The answer was read, or never will be."""
        self.used -= self._unread.pop(reader, 0)
