"""Directories that publishers sign: the server keeps and serves them, refuses what they did not sign, makes none."""

import hashlib
import json
from datetime import datetime, timezone

from ldp_aggregator.service.signing import described, public_key, sign_directory
from protocols.document.directory import read_directory

SEED = bytes(32)
KEY = public_key(SEED)
UNTIL = datetime(2100, 1, 1, tzinfo=timezone.utc)
JSON = {"Content-Type": "application/json"}


def signed(version, seed=SEED, **campaigns):
    return sign_directory(seed, version, UNTIL, campaigns)


async def put(server, document, key=KEY, scope="admin"):
    return await server.ask("PUT", f"/admin/v1/directories/{key}", scope, data=document, headers=JSON)


async def get(server, key=KEY, **headers):
    return await server.ask("GET", f"{server.public}/v1/directories/{key}", headers=headers)


async def test_what_was_signed_is_served_byte_for_byte(server):
    assert (await get(server)).status == 404
    document = signed(3)
    assert (await put(server, document)).json == {"version": 3}
    found = await get(server)
    assert (found.status, found.content) == (200, document)
    assert found.headers["ETag"] == f'"{hashlib.sha256(document).hexdigest()}"'
    assert (await get(server, **{"If-None-Match": found.headers["ETag"]})).status == 304


async def test_an_older_one_another_of_its_version_or_of_another_key_does_not_take_its_place(server):
    for _ in range(2):  # The same again is a success.
        assert (await put(server, signed(3))).json == {"version": 3}
    for other in (signed(2), signed(3, A="ab" * 32)):
        assert (await put(server, other)).refused == (409, "older-directory")
    assert (await put(server, signed(4))).status == 200
    seed = bytes([1]) * 32
    assert (await put(server, signed(1, seed=seed), key=public_key(seed))).status == 200
    assert (await get(server)).content == signed(4)
    assert (await get(server, public_key(seed))).content == signed(1, seed=seed)
    assert described(read_directory(signed(9), KEY)) == "version 9 until 2100-01-01T00:00:00Z: no campaign"


async def test_what_the_key_has_not_signed_is_refused(server):
    forged = json.loads(signed(1)) | {"statement": json.loads(signed(2))["statement"]}
    for document in (signed(1, seed=bytes([1]) * 32), json.dumps(forged).encode(), b"{}", b"nonsense"):
        assert (await put(server, document)).refused == (400, "invalid-directory")
    for key, status in (("A" * 43, 400), ("x", 404)):
        assert (await put(server, signed(1), key=key)).status == status
    assert (await put(server, b" " * (1 << 17))).status == 413, "too long, before it is read"
    for scope in ("collector", "node", "relay", "device"):
        assert (await put(server, signed(1), scope=scope)).status == 403
    assert (await get(server)).status == 404
    assert list(await server.store.acts()) == []
