"""Directories that publishers sign: the server keeps and serves them, refuses what they did not sign, makes none."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timedelta, timezone

import pytest

from ldp_aggregator.service.signing import public_key, sign_directory

SEED = bytes(32)
KEY = public_key(SEED)
UNTIL = datetime(2100, 1, 1, tzinfo=timezone.utc)
JSON = {"Content-Type": "application/json"}


def signed(version, seed=SEED, **campaigns):
    return sign_directory(seed, version, UNTIL, campaigns)


async def put(server, document, key=KEY, scope="admin"):
    headers = server.bearer(scope) | JSON
    url = f"{server.admin}/admin/v1/directories/{key}"
    async with server.session.put(url, data=document, headers=headers) as answer:
        return answer.status, await answer.json(content_type=None)


async def get(server, key=KEY, **headers):
    async with server.session.get(f"{server.public}/v1/directories/{key}", headers=headers) as answer:
        return answer.status, await answer.read(), answer.headers


async def test_what_was_signed_is_served_byte_for_byte(server):
    assert (await get(server))[0] == 404
    document = signed(3)
    assert await put(server, document) == (200, {"version": 3})
    status, body, headers = await get(server)
    assert (status, body) == (200, document)
    assert headers["ETag"] == f'"{hashlib.sha256(document).hexdigest()}"'
    assert (await get(server, **{"If-None-Match": headers["ETag"]}))[0] == 304


async def test_an_older_one_or_another_of_its_version_does_not_take_its_place(server):
    await put(server, signed(3))
    assert await put(server, signed(3)) == (200, {"version": 3}), "the same again"
    for other in (signed(2), signed(3, A="ab" * 32)):
        status, problem = await put(server, other)
        assert (status, problem["code"]) == (409, "older-directory")
    assert (await put(server, signed(4)))[0] == 200
    assert (await get(server))[1] == signed(4)


async def test_what_the_key_has_not_signed_is_refused(server):
    forged = json.loads(signed(1)) | {"statement": json.loads(signed(2))["statement"]}
    for document in (signed(1, seed=bytes([1]) * 32), json.dumps(forged).encode(), b"{}", b"nonsense"):
        status, problem = await put(server, document)
        assert (status, problem["code"]) == (400, "invalid-directory")
    assert (await put(server, signed(1), key="A" * 43))[0] == 400
    assert (await put(server, signed(1), key="x"))[0] == 404
    assert (await get(server))[0] == 404
    assert list(await server.store.acts()) == []


@pytest.mark.parametrize("scope", ["collector", "node", "relay", "device"])
async def test_only_an_admin_puts_one_there(server, scope):
    assert (await put(server, signed(1), scope=scope))[0] == 403


async def test_publishers_do_not_meet(server):
    other = bytes([1]) * 32
    await put(server, signed(5))
    assert (await put(server, signed(1, seed=other), key=public_key(other)))[0] == 200
    assert (await get(server))[1] == signed(5)
    assert (await get(server, public_key(other)))[1] == signed(1, seed=other)


async def test_a_directory_that_is_too_long_is_refused_before_it_is_read(server):
    assert (await put(server, b" " * (1 << 17)))[0] == 413


def test_a_directory_says_for_how_long_it_holds():
    from ldp_aggregator.service.signing import described
    from protocols.document.directory import read_directory

    until = UNTIL - timedelta(days=1)
    assert described(read_directory(sign_directory(SEED, 9, until, {}), KEY)) == (
        "version 9 until 2099-12-31T00:00:00Z: no campaign"
    )
