"""The commands that keep a store: backup, restore, migrate, and the end of a campaign; and those that only read."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys

import pytest
from cells import cell_campaign, cell_report, submission
from postgres import empty, postgres  # noqa: F401 - a fixture

from ldp_aggregator.store import open_store
from ldp_aggregator.store.sqlite.store import FILE_NAME


@pytest.fixture
def campaign(tmp_path, monkeypatch):
    """A campaign with five reports in the data folder of the environment."""
    monkeypatch.setenv("LDP_AGGREGATOR_DATA", str(tmp_path / "data"))
    made = cell_campaign()

    async def fill():
        store = await open_store(tmp_path / "data")
        await store.create_campaign(made)
        await store.count([submission(made, [cell_report(made, number) for number in range(5)])])
        await store.close()

    asyncio.run(fill())
    return made


def test_a_backup_is_restored_and_serves_again(run, campaign, tmp_path):
    token = run("token", "create", "--scope", "admin", "--name", "mine")[1].strip()
    assert run("backup", tmp_path / "backup")[0] == 0
    code, _, err = run("token", "create", "--scope", "admin", "--data", tmp_path / "backup")
    assert (code, "'ldp-aggregator restore' makes a store of it" in err) == (1, True)
    code, out, _ = run("restore", tmp_path / "backup", "--data", tmp_path / "new")
    assert (code, "1 tokens are revoked, 0 shares dropped" in out) == (0, True)
    [listed] = json.loads(run("token", "list", "--json", "--data", tmp_path / "new")[1])
    assert (listed["name"], listed["revoked"] is None) == ("mine", False)
    assert token not in out
    assert run("fsck", "--data", tmp_path / "new")[0] == 0
    assert json.loads(run("campaign", "list", "--json", "--data", tmp_path / "new")[1])[0]["reports"] == 5
    assert run("restore", tmp_path / "backup", "--data", tmp_path / "new")[0] == 1


def test_restore_says_what_it_takes(run, campaign, tmp_path, monkeypatch):
    for arguments in ((), (tmp_path / "backup", "--in-place")):
        code, _, err = run("restore", *arguments)
        assert (code, "takes the folder of a backup, or --in-place" in err) == (2, True)
    code, _, err = run("restore", "--in-place")
    assert (code, "--in-place is for a database" in err) == (2, True)
    monkeypatch.setenv("LDP_AGGREGATOR_DATABASE", "postgresql://ldp:geheim@database/ldp")
    code, _, err = run("restore", tmp_path / "backup")
    assert (code, "pg_restore" in err, "geheim" in err) == (2, True, False)


def test_a_database_is_restored_in_place(run, postgres, monkeypatch):  # noqa: F811
    asyncio.run(empty(postgres.address))
    monkeypatch.setenv("LDP_AGGREGATOR_DATABASE", postgres.address)
    run("token", "create", "--scope", "admin", "--name", "mine")
    code, out, _ = run("restore", "--in-place")
    assert (code, "1 tokens are revoked" in out) == (0, True)
    assert json.loads(run("token", "list", "--json")[1])[0]["revoked"]
    assert run("migrate")[:2] == (0, "the store has schema version 7\n")


def test_only_migrate_migrates(run, campaign, tmp_path):
    with sqlite3.connect(tmp_path / "data" / FILE_NAME) as db:
        (records,) = db.execute("SELECT records FROM recent_ids").fetchone()
        db.execute("CREATE TABLE ids_1 (id BLOB PRIMARY KEY, digest BLOB NOT NULL) WITHOUT ROWID")
        for start in range(0, len(records), 24):
            row = records[start : start + 16], records[start + 16 : start + 24]
            db.execute("INSERT INTO ids_1 VALUES (?, ?)", row)
        for statement in (
            "DROP TABLE deleted",
            "DROP TABLE origin",
            "DROP TABLE recent_ids",
            "DROP TABLE runs",
            "DROP TABLE acts",
            "DROP TABLE directories",
            "ALTER TABLE campaigns DROP COLUMN uploads_need",
            *(f"ALTER TABLE tokens DROP COLUMN {name}" for name in ("expires", "campaigns", "speaks_for")),
            *(f"ALTER TABLE parts DROP COLUMN {name}" for name in ("vouched", "least_batch")),
            *(f"ALTER TABLE campaigns DROP COLUMN {name}" for name in ("over_since", "sealed", "overlap", "unchecked")),
            "PRAGMA user_version = 4",
        ):
            db.execute(statement)
    db.close()
    for command in (
        ["campaign", "list"],
        ["campaign", "show", campaign.id],
        ["campaign", "close", campaign.id],
        ["estimates", campaign.id],
        ["train", campaign.id],
        ["fsck"],
        ["token", "list"],
        ["token", "create", "--scope", "admin"],
    ):
        code, _, err = run(*command)
        assert (code, "'ldp-aggregator migrate'" in err) == (1, True), command
    served = subprocess.run(
        [sys.executable, "-m", "ldp_aggregator", "serve", "--host", "127.0.0.1", "--port", "0", "--admin-port", "0"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (served.returncode, "'ldp-aggregator migrate'" in served.stderr) == (1, True)
    assert run("backup", tmp_path / "before")[0] == 0
    assert run("migrate")[:2] == (0, "the store had schema version 4 and has 7\n")
    assert run("migrate")[:2] == (0, "the store has schema version 7\n")
    assert run("fsck")[0] == 0
    assert run("migrate", "--data", tmp_path / "none")[0] == 1


def test_reading_commands_change_nothing(run, campaign, tmp_path):
    path = tmp_path / "data" / FILE_NAME
    before = path.read_bytes()
    for command in (
        ["campaign", "list"],
        ["campaign", "show", campaign.id],
        ["campaign", "show", campaign.id, "--document"],
        ["estimates", campaign.id],
        ["fsck"],
        ["token", "list"],
    ):
        assert run(*command)[0] == 0, command
        log = path.with_name(FILE_NAME + "-wal")
        assert not log.exists() or log.stat().st_size == 0, command
    assert path.read_bytes() == before


def test_a_release_is_made_by_who_reads_estimates_of_a_campaign_that_fixes_them(run, campaign, tmp_path):
    fixed = cell_campaign(privacy={"epsilon": 1.0, "discrete": "de", "release_every": 3})

    async def fill(first, end):
        store = await open_store(tmp_path / "data")
        await store.create_campaign(fixed)
        await store.count([submission(fixed, [cell_report(fixed, number) for number in range(first, end)])])
        await store.close()

    seen = []
    for first, end in ((0, 4), (4, 6), (6, 7)):
        asyncio.run(fill(first, end))
        seen.append(json.loads(run("estimates", fixed.id, "--json")[1])["questions"][0]["n"])
    assert seen == [4, 4, 7]


def test_the_end_of_a_campaign_from_the_command_line(run, campaign):
    assert run("campaign", "seal", campaign.id)[0] == 1
    assert run("campaign", "close", campaign.id)[:2] == (0, "closed with 5 reports\n")
    assert run("campaign", "reopen", campaign.id)[:2] == (0, "reopened with 5 reports\n")
    assert json.loads(run("campaign", "list", "--json")[1])[0]["status"] == "open"
    run("campaign", "close", campaign.id)
    code, _, err = run("campaign", "seal", campaign.id)
    assert (code, "can be sealed from" in err) == (1, True)
    assert run("campaign", "seal", campaign.id, "--now")[:2] == (0, "sealed with 5 reports; their ids are gone\n")
    code, _, err = run("campaign", "reopen", campaign.id)
    assert (code, "is sealed" in err) == (1, True)
    assert json.loads(run("campaign", "show", campaign.id, "--json")[1])["sealed"] is not None
    assert run("campaign", "delete", campaign.id)[:2] == (0, f"campaign {campaign.id} is deleted\n")
    assert json.loads(run("campaign", "list", "--json")[1]) == []
    for command in ("close", "reopen", "seal", "delete"):
        assert run("campaign", command, campaign.id)[0] == 1


def test_reports_that_two_merged_stores_had_are_told_wherever_they_count(run, campaign, tmp_path):
    run("merge", tmp_path / "data", tmp_path / "data", "-o", tmp_path / "both")
    both = ["--data", tmp_path / "both"]
    for command in (["campaign", "show"], ["estimates"], ["train", "--anyway"]):
        out = run(*command, campaign.id, *both)[1]
        assert "counted twice, by stores that were merged: 5 reports, 5 at most" in out, command
        assert "not for the devices, 5 at most, that two merged stores had both counted" in out, command
    told = json.loads(run("estimates", campaign.id, "--json", *both)[1])
    assert told["counted_twice"] == {"known": 5, "at_most": 5}
    assert told["published"]["colluding"] == 10
    assert told["published"]["epsilon"] == campaign.realised_epsilon


def logged(run, *place):
    return [(act["act"], act["detail"], act["outcome"]) for act in json.loads(run("log", "--json", *place)[1])]


def test_a_backup_is_in_the_log_of_the_store_and_begun_in_that_of_the_copy(run, campaign, tmp_path):
    backup, new = tmp_path / "backup", tmp_path / "new"
    assert run("backup", backup)[0] == 0
    assert logged(run) == [("back up store", str(backup), "done")]
    assert run("restore", backup, "--data", new)[0] == 0
    assert logged(run, "--data", new)[0] == ("back up store", str(backup), "asked")
    assert run("backup", backup)[0] == 1
    assert logged(run)[-1] == ("back up store", str(backup), "failed")


def test_what_takes_no_entry_is_backed_up_all_the_same_and_said_to_be_in_no_log(run, campaign, tmp_path):
    assert run("backup", tmp_path / "backup")[0] == 0
    code, out, _ = run("backup", tmp_path / "again", "--data", tmp_path / "backup")
    assert (code, "this is in no log" in out) == (0, True)
    assert (tmp_path / "again" / FILE_NAME).exists()
    code, out, err = run("backup", tmp_path / "nothing", "--data", tmp_path / "nowhere")
    assert (code, "no log" in out, "there is no store in" in err) == (1, False, True)


def test_a_merged_stores_log_begins_with_the_merge(run, campaign, tmp_path):
    data, both = tmp_path / "data", tmp_path / "both"
    assert run("merge", data, data, "-o", both)[0] == 0
    assert logged(run, "--data", both) == [("merge stores", f"{data} and {data}", "done")]
    assert logged(run) == []
