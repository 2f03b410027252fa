"""Fuzzing: uploads that are damaged in every way, and requests made up from the OpenAPI document.

Whatever comes, the answer is one that the document names, never a 5xx, and only sound reports are counted.
"""

from __future__ import annotations

import asyncio
import random
import re

import msgpack
import pytest
from cells import reports_of
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ldp_aggregator.server.problems import PROBLEMS
from ldp_aggregator.server.process import ADMIN, PUBLIC
from protocols import encode_upload


async def counted(server, campaign):
    return int((await server.store.tally(campaign.id)).n.sum())


async def test_every_truncation_and_every_longer_message_is_refused(server):
    campaign = await server.publish()
    whole = encode_upload(reports_of(campaign, [1, 2]))
    damaged = [whole[:length] for length in range(len(whole))] + [whole + bytes([byte]) for byte in (0, 0xC0, 0x92)]
    for body in damaged:
        assert await server.refused(campaign, body) == (400, "malformed-upload")
    assert await counted(server, campaign) == 0


async def test_a_flipped_bit_is_refused_or_another_sound_report(server):
    campaign = await server.publish()
    whole = encode_upload(reports_of(campaign, [1]))
    dice = random.Random(7)
    sound = 0
    for position in range(len(whole)):
        flipped = bytearray(whole)
        flipped[position] ^= 1 << dice.randrange(8)
        status, answer = await server.upload(campaign, bytes(flipped))
        assert status in (200, 400)
        sound += status == 200 and not answer["rejected"]
    assert sound <= 17, "only the id and the payload may change without notice"
    assert await counted(server, campaign) == sound
    assert await server.store.check() == []


OTHER_TYPES = [
    None,
    1,
    [],
    {},
    [1],
    [1, {}],
    [1, []],
    [1, [[]]],
    [1, [[0, b"", b""]]],
    [1, [[0, "a" * 16, b"\0"]]],
    [1, [[0, b"a" * 15, b"\0"]]],
    [1, [[0, b"a" * 16, b"\0\0"]]],
    [1, [[1, b"a" * 16, b"\0"]]],
    [1, [[-1, b"a" * 16, b"\0"]]],
    [1, [[True, b"a" * 16, b"\0"]]],
    [1, [[0.0, b"a" * 16, b"\0"]]],
    [1, [[0, b"a" * 16, b"\0"], [0, b"b" * 16, b"\0"]]],
    [1, [[0, b"a" * 16, b"\0", 1]]],
    [2, [[0, b"a" * 16, b"\0"]]],
    [1, [[0, b"a" * 16, b"\0"]], 3],
]


async def test_other_types_and_shapes_are_refused(server):
    campaign = await server.publish()
    for value in OTHER_TYPES:
        assert await server.refused(campaign, msgpack.packb(value)) == (400, "malformed-upload"), value
    assert await counted(server, campaign) == 0


async def test_lying_lengths_take_no_memory_and_count_nothing(server):
    campaign = await server.publish()
    for body in (
        b"\x92\x01\x91\x93\x00\xc6\xff\xff\xff\xff",  # A binary of 4 GiB.
        b"\xdd\xff\xff\xff\xff",  # An array of 4 billion entries.
        b"\xdf\xff\xff\xff\xff",
        b"\xc9\xff\xff\xff\xff\x01",
        b"\x92\x01" + b"\x91" * 8_000,
    ):
        assert await server.refused(campaign, body) == (400, "malformed-upload")
    assert await counted(server, campaign) == 0


operations = st.sampled_from([(True, operation) for operation in PUBLIC] + [(False, operation) for operation in ADMIN])
texts = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=50)
queries = st.dictionaries(
    st.sampled_from(["post", "version", "max_reports", "federated", "scope", "last", "x"]),
    texts | st.just("1"),
    max_size=3,
)
bodies = st.binary(max_size=200) | st.recursive(
    st.none() | st.booleans() | st.integers(0, 2**63) | st.binary(max_size=40),
    lambda inner: st.lists(inner, max_size=4),
).map(msgpack.packb)
media_types = st.sampled_from(
    [
        "application/vnd.ldp-bayes.reports+msgpack",
        "application/vnd.ldp-bayes.statistics+msgpack",
        "application/json",
        "application/toml",
        "text/plain",
        "",
    ]
)
tokens = st.sampled_from(["", "admin", "collector", "node", "relay", "wrong"])


@pytest.fixture
def fuzzed(serving):
    """One server for all examples, on a loop of its own."""
    loop = asyncio.new_event_loop()
    context = serving()
    server = loop.run_until_complete(context.__aenter__())
    campaign = loop.run_until_complete(server.publish())
    yield loop.run_until_complete, server, campaign
    loop.run_until_complete(context.__aexit__(None, None, None))
    loop.close()


@settings(
    max_examples=5 * settings.default.max_examples,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_no_request_of_the_api_makes_the_server_fail(fuzzed, data):
    on_public, operation = data.draw(operations)
    run, server, campaign = fuzzed
    ids = [campaign.id, "A" * 43, "x"]
    path = re.sub(r"\{\w+\}", data.draw(st.sampled_from(ids)), operation.path)
    headers = {}
    if media_type := data.draw(media_types):
        headers["Content-Type"] = media_type
    if token := data.draw(tokens):
        headers["Authorization"] = f"Bearer {server.tokens.get(token, token)}"
    method = data.draw(st.sampled_from([operation.method] * 4 + ["GET", "POST", "PUT", "HEAD", "OPTIONS"]))
    query, body = data.draw(queries), data.draw(bodies)

    async def ask():
        url = (server.public if on_public else server.admin) + path
        async with server.session.request(method, url, params=query, data=body, headers=headers) as answer:
            content = await answer.read()
            return answer.status, answer.content_type, content

    status, content_type, content = run(ask())
    assert status < 500
    if method == operation.method:
        documented = {*operation.answers, *(PROBLEMS[code].status for code in operation.all_codes())}
        assert status in documented
    if status >= 400 and method != "HEAD":
        assert content_type == "application/problem+json"
        assert b'"code"' in content
    assert run(server.store.check()) == []
