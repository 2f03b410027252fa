"""A socket that fails in an unexpected way fails alone, and operators are heard while uploads are refused."""

from __future__ import annotations

import asyncio
import json

import aiohttp
from raw_http import connect, exchange, problem_of

from ldp_aggregator.server.sockets.door import Door


async def test_a_connection_whose_answer_cannot_be_written_harms_no_other(
    serving, gated, ready, request_of, next_answer, monkeypatch
):
    async with serving(gated) as server:
        campaign = await ready(server)
        opened = [await connect(server) for _ in range(5)]
        for number, (_, writer) in enumerate(opened):
            writer.write(request_of(campaign, number))
        await asyncio.sleep(0.2)
        done, failed = Door._done, []

        def fails_once(self):
            if not failed:
                failed.append(self)
                raise ValueError("secret text")
            done(self)

        monkeypatch.setattr(Door, "_done", fails_once)
        gated.gate.set()
        heads = [(await next_answer(reader))[0] for reader, _ in opened]
        assert all(head.startswith(b"HTTP/1.1 200") for head in heads)
        assert (await exchange(server, request_of(campaign, 9, Connection="close"))).startswith(b"HTTP/1.1 200")
        for _, writer in opened:
            writer.close()


async def test_a_connection_that_cannot_be_looked_at_does_not_stop_the_watch(serving, next_answer, monkeypatch):
    look, failed = Door.look, []

    def fails_once(self, now):
        if not failed:
            failed.append(self)
            raise ValueError("secret text")
        look(self, now)

    monkeypatch.setattr(Door, "look", fails_once)
    async with serving(limits={"header_seconds": 0.4}) as server:
        for _ in range(2):  # The first is cut for the failure, the second because its time is up.
            reader, writer = await connect(server)
            assert await asyncio.wait_for(reader.read(), 10) == b""
            writer.close()


async def test_operators_are_heard_while_there_is_no_room_for_uploads(serving, ready, request_of, budgets):
    async with serving(limits={"queue_bytes": 1 << 16}) as server:
        campaign = await ready(server)
        public = budgets[0]
        for _ in range(500):  # The answer may be there a little before its room is given back.
            if not public.held:
                break
            await asyncio.sleep(0.01)
        assert public.take(1 << 16)
        refused = await exchange(server, request_of(campaign, 1, Connection="close"))
        assert problem_of(refused) == (503, "overloaded")
        url = server.admin + "/admin/v1/campaigns"
        headers = server.bearer("admin") | {"Content-Type": "application/json"}
        draft = json.dumps({"version": 1, "title": "t" * 5000})
        async with server.session.post(url, data=draft, headers=headers) as answer:
            assert (answer.status, (await answer.json(content_type=None)).get("code")) == (400, "invalid-draft")
        async with server.session.get(server.operations + "/healthz") as answer:
            assert answer.status == 200
        async with aiohttp.ClientSession() as session, session.get(server.operations + "/readyz") as answer:
            assert answer.status == 200
        public.give(1 << 16)
        assert (await exchange(server, request_of(campaign, 1, Connection="close"))).startswith(b"HTTP/1.1 200")
