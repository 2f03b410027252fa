"""What commands share: files that are whole or untouched, the store, which is closed, and the guarantees they tell."""

import argparse
import asyncio
import json
import os
from pathlib import Path

import pytest
from cells import publish

from ldp_aggregator.cli import common
from ldp_aggregator.cli.common import CommandError, act_on, read_draft, tell_guarantees, with_store, write_file
from ldp_aggregator.counting.tally import Arrivals
from ldp_aggregator.learning.published import Relayed
from ldp_aggregator.store import open_store


@pytest.mark.parametrize("failing", ["write_text", "replace"])
def test_a_file_that_cannot_be_written_whole_leaves_what_was_there(tmp_path, monkeypatch, failing):
    path = tmp_path / "model.json"
    write_file(path, "before")
    real = getattr(Path, failing)

    def fails(self, *given, **more):
        if failing == "write_text":
            real(self, "half", **more)
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, failing, fails)
    with pytest.raises(CommandError, match=r"model\.json cannot be written: No space left on device"):
        write_file(path, "after")
    monkeypatch.undo()
    assert {one.name: one.read_text() for one in tmp_path.iterdir()} == {"model.json": "before"}
    write_file(path, "after")
    assert path.read_text() == "after"


def test_the_store_is_closed_also_where_the_work_fails(data, monkeypatch):
    opened = []

    async def noted(*given, **more):
        opened.append(store := await open_store(*given, **more))
        close, store.closed = store.close, 0

        async def closes():
            store.closed += 1
            await close()

        store.close = closes
        return store

    async def fails(store):
        raise CommandError("no")

    monkeypatch.setattr(common, "open_store", noted)
    with pytest.raises(CommandError):
        with_store(argparse.Namespace(), fails, create=True)
    assert [store.closed for store in opened] == [1]


def test_an_act_on_a_campaign_that_is_named_twice_is_written_down_once_and_of_one_that_is_not_there_never(data):
    async def made():
        store = await open_store(data)
        campaign = await publish(store)
        await store.close()
        return campaign

    async def nothing(store):
        pass

    async def acts(store):
        return [act.to_json() for act in await store.acts()]

    one = asyncio.run(made()).id
    act_on(argparse.Namespace(), "look", (one, one), nothing)
    with pytest.raises(Exception, match="no campaign has the id"):
        act_on(argparse.Namespace(), "look", ("A" * 43,), nothing)
    written = with_store(argparse.Namespace(), acts)
    assert [(act["campaign"], act["act"], act["outcome"]) for act in written] == [(one, "look", "done")]


def relayed(name):
    return Relayed(name, Arrivals(9, 0, None), None, "no batch")


@pytest.mark.parametrize(
    ("behind", "twice", "says"),
    [
        (["a"], None, ["device loses, to who runs"]),
        (["a", "b"], None, ["device of campaign a loses, to who runs", "device of campaign b loses, to who runs"]),
        ([], {"known": 0, "at_most": 0}, []),
        ([], {"known": 0, "at_most": 7}, ["counted twice, by stores that were merged: 0 reports, 7 at most"]),
    ],
)
def test_beside_the_guarantees_stands_what_relays_vouch_for_and_what_may_count_twice(capsys, behind, twice, says):
    tell_guarantees(1.5, "all of it", [relayed(name) for name in behind], twice)
    local, published, *others = capsys.readouterr().out.splitlines()
    assert local.endswith("to whoever has its report: epsilon = 1.5")
    assert published.endswith("to who sees only what is published: all of it")
    assert len(others) == len(says)
    assert [part for part, line in zip(says, others, strict=True) if part not in line] == []


def test_a_draft_is_read_by_the_end_of_its_files_name_in_capitals_too(tmp_path):
    for name, text in (("d.TOML", "version = 1"), ("d.toml", "version = 1"), ("d.JSON", json.dumps({"version": 1}))):
        (tmp_path / name).write_text(text)
        assert read_draft(tmp_path / name) == {"version": 1}
