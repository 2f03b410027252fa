"""Common to the tests of connections: the budget of every server, which is empty when nobody is there."""

from __future__ import annotations

from typing import ClassVar

import pytest

from ldp_aggregator.server.sockets import connections
from ldp_aggregator.server.sockets.connections import Memory


class WatchedMemory(Memory):
    """Remembers the most that was held."""

    made: ClassVar[list[WatchedMemory]] = []

    def __init__(self, most):
        super().__init__(most)
        self.peak = 0
        self.made.append(self)

    def take(self, size):
        taken = super().take(size)
        self.peak = max(self.peak, self.held)
        return taken


@pytest.fixture(autouse=True)
def budgets(monkeypatch):
    """Nothing is held for clients that are gone, in any test. The first is the public listener's."""
    monkeypatch.setattr(WatchedMemory, "made", [])
    monkeypatch.setattr(connections, "Memory", WatchedMemory)
    yield WatchedMemory.made
    assert [memory.held for memory in WatchedMemory.made] == [0] * len(WatchedMemory.made)
