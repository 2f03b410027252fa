"""Common to the tests of connections: the budget of every server, which is empty when nobody is there."""

from __future__ import annotations

import asyncio
import re
from typing import ClassVar

import pytest
from raw_http import request_head

from ldp_aggregator.server.sockets import connections
from ldp_aggregator.server.sockets.connections import Memory
from protocols import encode_upload


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
    """Nothing is held for clients that are gone, in any test."""
    monkeypatch.setattr(WatchedMemory, "made", [])
    monkeypatch.setattr(connections, "Memory", WatchedMemory)
    yield WatchedMemory.made
    assert [memory.held for memory in WatchedMemory.made] == [0] * len(WatchedMemory.made)


@pytest.fixture
def ready(make_campaign, make_report):
    """A published campaign that the server has seen an upload to, so that the next ones take the short way."""

    async def make(server, **changes):
        campaign = make_campaign(**changes)
        await server.store.create_campaign(campaign)
        gate = getattr(server.store, "gate", None)
        if gate is not None:
            gate.set()
        assert (await server.upload(campaign, [make_report(campaign, 63)]))[0] == 200
        if gate is not None:
            gate.clear()
        return campaign

    return make


@pytest.fixture
def request_of(make_report):
    """The bytes of an upload of one report."""

    def make(campaign, number, **headers):
        body = encode_upload([make_report(campaign, number)])
        return request_head(campaign, len(body), **headers) + body

    return make


async def read_answer(reader, seconds=10):
    """Head and body of the next answer."""
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), seconds)
    length = re.search(rb"(?i)content-length: (\d+)", head)
    return head, await asyncio.wait_for(reader.readexactly(int(length[1])), seconds)


@pytest.fixture
def next_answer():
    return read_answer
