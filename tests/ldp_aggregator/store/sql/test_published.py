"""Directories that publishers have signed, in every store: a later one takes the place of an earlier, and no other."""

import asyncio

import pytest

from ldp_aggregator.store import StoreError

KEYS = ("A" * 43, "B" * 43)


async def test_a_publishers_directory_gives_way_to_a_later_version_and_to_nothing_else(store):
    first, second = KEYS
    await store.put_directory(first, 3, b"three")
    await store.put_directory(second, 1, b"of another")
    for version, document in ((3, b"other bytes"), (2, b"two"), (2, b"three")):
        with pytest.raises(StoreError, match="version 3 of this publisher's directory is kept") as refused:
            await store.put_directory(first, version, document)
        assert refused.value.code == "older-directory"
        assert await store.directory(first) == b"three"
    await store.put_directory(first, 3, b"three")
    await store.put_directory(first, 4, b"three")
    with pytest.raises(StoreError, match="version 4"):
        await store.put_directory(first, 3, b"three")
    assert [await store.directory(key) for key in (*KEYS, "C" * 43)] == [b"three", b"of another", None]


async def test_of_two_that_are_put_at_once_the_later_stays(instances):
    key = KEYS[0]
    for number in range(1, 20, 2):
        puts = (one.put_directory(key, number + at, b"%d" % (number + at)) for at, one in enumerate(instances))
        ends = await asyncio.gather(*puts, return_exceptions=True)
        assert ends[1] is None
        assert await instances[0].directory(key) == b"%d" % (number + 1)
