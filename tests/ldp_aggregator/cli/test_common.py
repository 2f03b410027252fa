"""What commands share: files that are whole or untouched, the store, which is closed, and the guarantees they tell."""

import argparse
import asyncio
import json
import os
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import pytest
from cells import publish

from ldp_aggregator.cli import common
from ldp_aggregator.cli.common import (
    CommandError,
    act_on,
    complete_ids,
    read_draft,
    tell_guarantees,
    with_store,
    write_file,
)
from ldp_aggregator.counting.tally import Arrivals
from ldp_aggregator.guarantees import PublishedGuarantee, Relayed
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


PUBLISHED = PublishedGuarantee(0.5, 1e-9, "published", (), 60_000, 0, ("nobody looks", "once"))


@pytest.mark.parametrize(
    ("behind", "twice", "says"),
    [
        (["a"], None, ["Who runs the server is, of one device, at most 82 % sure: no batch."]),
        (["a" * 9, "b" * 9], None, [f"of one device of campaign {8 * one}, at most 82 % sure" for one in "ab"]),
        ([], {"known": 0, "at_most": 0}, []),
        ([], {"known": 0, "at_most": 7}, ["Counted twice, by stores that were merged: 0 reports, 7 at most."]),
    ],
)
def test_beside_the_guarantees_stands_what_relays_vouch_for_and_what_may_count_twice(capsys, behind, twice, says):
    tell_guarantees(1.5, PUBLISHED, [relayed(name) for name in behind], twice)
    nothing, local, published, *others, more = capsys.readouterr().out.splitlines()
    assert nothing == ""
    assert local == "Who intercepts an answer is at most 82 % sure of it, where 50 % is a coin: epsilon = 1.5."
    assert published == (
        "Readers of the results are at most 63 % sure: epsilon = 0.5, delta = 1e-09, one of 60,000 devices."
    )
    assert len(others) == len(says)
    assert [part for part, line in zip(says, others, strict=True) if part not in line] == []
    assert more == "These have conditions; --explain tells them."


def test_conditions_are_told_where_they_are_asked_for(capsys):
    tell_guarantees(1.5, PUBLISHED, [relayed("a")], explain=True)
    assert capsys.readouterr().out.splitlines()[-3:] == [
        *("  results: published", "  results: if nobody looks", "  results: if once"),
    ]


def test_the_first_letters_of_an_id_stand_for_it_where_no_other_begins_so(monkeypatch):
    ids = ["abcde" + "x" * 38, "abcdf" + "x" * 38, "zzzz" + "y" * 39]

    def listed(options, work, **how):
        return [SimpleNamespace(id=one, title=f"title of {one[:5]}") for one in ids]

    monkeypatch.setattr(common, "with_store", listed)
    options = Namespace(id="abcde", ids=["zzzz", ids[1], "other"], evaluation=None, campaign="zzz")
    complete_ids(options)
    assert options == Namespace(id=ids[0], ids=[ids[2], ids[1], "other"], evaluation=None, campaign="zzz")
    with pytest.raises(CommandError, match=r"2 campaigns .* begins with abcd: abcdex+ \(title of abcde\); abcdf"):
        complete_ids(Namespace(id="abcd"))
    monkeypatch.setattr(common, "with_store", None)
    complete_ids(Namespace(id=ids[0], ids=ids))  # Whole ones are not looked up.


def test_a_draft_is_read_by_the_end_of_its_files_name_in_capitals_too(tmp_path):
    for name, text in (("d.TOML", "version = 1"), ("d.toml", "version = 1"), ("d.JSON", json.dumps({"version": 1}))):
        (tmp_path / name).write_text(text)
        assert read_draft(tmp_path / name) == {"version": 1}
