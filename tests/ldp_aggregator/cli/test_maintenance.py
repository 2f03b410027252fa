"""The commands that keep a store: backup, restore, and the end of a campaign; and those that only read."""

import asyncio
import getpass
import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime, timedelta, timezone
from unittest.mock import AsyncMock

import pytest
from cells import cell_report, count, publish, submission
from daemon import Daemon
from postgres import empty, postgres  # noqa: F401 - a fixture
from uploader import post

from ldp_aggregator.archive.locations import open_place
from ldp_aggregator.archive.writer import Archive, ArchivedCounts
from ldp_aggregator.cli import maintenance
from ldp_aggregator.service.archives import counts_of
from ldp_aggregator.service.settings import read_settings
from ldp_aggregator.store import StoreError, open_store
from ldp_aggregator.store.backup import Combined
from ldp_aggregator.store.contract import Restored
from ldp_aggregator.store.postgres import PostgresStore
from ldp_aggregator.store.sqlite.database import FILE_NAME
from ldp_protocols import encode_upload


def within(folder, work):
    """What an opened store gives."""

    async def done():
        store = await open_store(folder)
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(done())


async def filled(store, numbers=range(5), **changes):
    campaign = await publish(store, **changes)
    await count(store, campaign, numbers)
    return campaign


@pytest.fixture
def campaign(data):
    """A campaign with five reports in the data folder of the environment."""
    return within(data, filled)


def listed(run, *place):
    return json.loads(run("campaign", "list", "--json", *place)[1])


def logged(run, *place):
    return [
        (act["act"], act["detail"], act["outcome"]) for act in json.loads(run("status", "--log", "--json", *place)[1])
    ]


def test_a_backup_is_restored_and_serves_again_and_is_in_the_log_of_either_store(run, refused, campaign, tmp_path):
    backup, new, create = tmp_path / "backup", ("--data", tmp_path / "new"), ("token", "create", "--scope", "admin")
    token = run(*create, "--name", "mine")[1].strip()
    assert run("backup", backup)[0] == 0
    assert logged(run)[1:] == [("back up store", str(backup), "done")]
    assert "'ldp-aggregator restore' makes a store of it" in refused(*create, "--data", backup)
    code, out, _ = run("restore", backup, *new)
    assert (code, "revoked: 1 token; dropped: 0 shares" in out) == (0, True)
    [kept] = json.loads(run("token", "list", "--json", *new)[1])
    assert (kept["name"], kept["revoked"] is None) == ("mine", False)
    assert token not in out
    assert run("fsck", *new)[0] == 0
    assert listed(run, *new)[0]["reports"] == 5
    assert logged(run, *new)[1] == ("back up store", str(backup), "asked"), "it had begun"
    assert run("restore", backup, *new)[0] == 1
    assert run("backup", backup)[0] == 1
    assert logged(run)[-1] == ("back up store", str(backup), "failed")
    code, out, _ = run("backup", tmp_path / "again", "--data", backup)
    assert (code, "this is in no log" in out) == (0, True), "a backup takes no entry"
    assert (tmp_path / "again" / FILE_NAME).exists()
    code, out, err = run("backup", tmp_path / "nothing", "--data", tmp_path / "nowhere")
    assert (code, "no log" in out, "there is no store in" in err) == (1, False, True)


def test_a_backup_that_fails_half_way_is_not_begun_again(run, campaign, tmp_path, monkeypatch):
    tries = []

    def full(data, output):
        tries.append(output)
        raise StoreError("the copy failed: No space left on device")

    monkeypatch.setattr(maintenance, "copy_store", full)
    code, out, err = run("backup", tmp_path / "backup")
    assert (code, out, "No space left" in err) == (1, "", True)
    assert tries == [tmp_path / "backup"]


def test_shares_stay_in_what_is_restored_on_a_word_only(run, refused, campaign, tmp_path, monkeypatch):
    asked = []

    def restored(*given, keep_shares):
        asked.append(keep_shares)
        return Restored(0, 0)

    async def renewed(self, *, keep_shares):
        return restored(keep_shares=keep_shares)

    async def opened(cls, address):
        return cls(AsyncMock())

    monkeypatch.setattr(maintenance, "restore_store", restored)
    monkeypatch.setattr(PostgresStore, "renew", renewed)
    monkeypatch.setattr(PostgresStore, "open", classmethod(opened))
    for place in (["backup"], ["--in-place", "--database", "postgresql://nowhere/ldp"]):
        for word in ([], ["--keep-shares"]):
            assert run("restore", *place, *word)[0] == 0
    assert asked == [False, True] * 2


def test_stores_are_merged_as_if_disjoint_on_a_word_only_and_each_kind_of_doubt_has_its_number(
    run, monkeypatch, tmp_path
):
    asked = []

    def combined(*folders, assume_disjoint, act):
        asked.append((*folders, assume_disjoint, act.detail))
        return [Combined("plain", 9, 0, 0), Combined("known", 9, 4, 0), Combined("both", 9, 4, 6)]

    monkeypatch.setattr(maintenance, "combine_stores", combined)
    a, b, c = (tmp_path / name for name in "abc")
    told = run("merge", a, b, "-o", c)[1]
    assert run("merge", a, b, "-o", c, "--assume-disjoint")[1] == told
    assert told.splitlines() == [
        "plain 9 reports or shares",
        "known 9 reports or shares, 4 of them counted twice: both stores had them",
        "both 9 reports or shares, 4 of them counted twice: both stores had them, at most 6 counted twice: "
        "the ids are gone",
    ]
    assert asked == [(a, b, c, False, f"{a} and {b}"), (a, b, c, True, f"{a} and {b}, assumed to be disjoint")]


def test_restore_and_backup_say_what_they_take(run, refused, campaign, tmp_path, monkeypatch):
    for arguments in ((), (tmp_path / "backup", "--in-place")):
        assert "takes the folder of a backup, or --in-place" in refused("restore", *arguments, expected=2)
    assert "--in-place is for a database" in refused("restore", "--in-place", expected=2)
    monkeypatch.setenv("LDP_AGGREGATOR_DATABASE", "postgresql://ldp:geheim@database/ldp")
    err = refused("restore", tmp_path / "backup", expected=2)
    assert ("pg_restore" in err, "geheim" in err) == (True, False)
    err = refused("backup", tmp_path / "copy")
    assert ("PostgreSQL" in err, "pg_dump" in err, "geheim" in err) == (True, True, False)
    assert not (tmp_path / "copy").exists(), "a copy of an old folder would be no backup of the database"


def test_a_database_is_restored_in_place(run, postgres, monkeypatch):  # noqa: F811
    asyncio.run(empty(postgres.address))
    monkeypatch.setenv("LDP_AGGREGATOR_DATABASE", postgres.address)
    run("token", "create", "--scope", "admin", "--name", "mine")
    code, out, _ = run("restore", "--in-place")
    assert (code, "revoked: 1 token;" in out) == (0, True)
    assert json.loads(run("token", "list", "--json")[1])[0]["revoked"]


def test_a_databases_backup_is_made_elsewhere_and_told_for_the_alert(run, refused, postgres, monkeypatch):  # noqa: F811
    asyncio.run(empty(postgres.address))
    monkeypatch.setenv("LDP_AGGREGATOR_DATABASE", postgres.address)
    assert run("token", "create", "--scope", "admin")[0] == 0
    assert "backup --made-elsewhere" in refused("backup", "somewhere")
    assert run("backup", "--made-elsewhere")[:2] == (0, "the backup is in the log\n")
    assert logged(run)[-1] == ("back up store", "made elsewhere", "done")
    monkeypatch.delenv("LDP_AGGREGATOR_DATABASE")
    assert "ldp-aggregator backup FOLDER" in refused("backup", "--made-elsewhere")
    for line in ([], ["somewhere", "--made-elsewhere"]):
        assert "backup takes the new folder" in refused("backup", *line, expected=2)


def test_a_damaged_run_is_taken_out_and_the_command_says_what_that_means(run, data, campaign, tmp_path, monkeypatch):
    monkeypatch.setattr("ldp_aggregator.store.sqlite.run_files.LEAST_RUN", 40)

    async def fill(store):
        await count(store, campaign, range(5, 64))
        while store.tidying or not list(data.glob("*.ids/*.run")):
            await store.beat()

    within(data, fill)
    [damaged] = data.glob("*.ids/*.run")
    sound = damaged.read_bytes()
    damaged.write_bytes(sound[:4200] + b"\xff\xff" + sound[4202:])
    code, out, _ = run("fsck")
    assert (code, "--take-out-damaged" in out) == (1, True)
    assert run("backup", tmp_path / "copy")[0] == 1
    code, out, _ = run("fsck", "--take-out-damaged")
    assert code == 0
    assert "taken out; 0 of its 64 ids were saved" in out
    assert "64 reports stay counted without an id: one that is sent again counts once more" in out
    shown = listed(run)[0]
    assert (shown["reports"], shown["counted_twice"], shown["counted_twice_at_most"]) == (64, 0, 64)
    assert run("backup", tmp_path / "copy")[0] == 0
    assert "take out damaged runs" in run("status", "--log")[1]


def test_a_store_of_another_version_is_refused_by_every_command_in_one_sentence(run, data, campaign, tmp_path):
    with closing(sqlite3.connect(data / FILE_NAME)) as db:
        db.execute("PRAGMA user_version = 9")
    lines = "campaign list", f"campaign close {campaign.id}", f"train {campaign.id}", "fsck", f"backup {tmp_path}/copy"
    for line in (*lines, f"restore {data} --data {tmp_path}/new", f"merge {data} {data} --output {tmp_path}/both"):
        code, _, err = run(*line.split())
        assert (code, err.count("\n")) == (1, 1), line
        assert "the store has version 9, and this program reads version 2" in err
    assert [path.parent.name for path in tmp_path.rglob(FILE_NAME)] == ["data"]


def test_reading_commands_change_nothing_and_leave_no_entry(run, data, campaign):
    path, log = data / FILE_NAME, data / (FILE_NAME + "-wal")
    before = path.read_bytes()
    one = campaign.id
    lines = ("campaign list", f"campaign show {one}", f"campaign show {one} --document", f"estimates {one}", "fsck")
    for line in (*lines, "token list", "status --log"):
        assert run(*line.split())[0] == 0, line
        assert not log.exists() or log.stat().st_size == 0, line
    assert path.read_bytes() == before
    assert logged(run) == []


def test_the_end_of_a_campaign_from_the_command_line(run, refused, campaign):
    close = ("campaign", "close", campaign.id)
    assert "'ldp-aggregator campaign close' comes first" in refused(*close, "--seal")
    assert run(*close)[:2] == (0, "closed with 5 reports\n")
    assert run(*close, "--undo")[:2] == (0, "reopened with 5 reports\n")
    assert listed(run)[0]["status"] == "open"
    run(*close)
    assert listed(run)[0]["status"] == "closed"
    assert "can be sealed from" in refused(*close, "--seal")
    assert "not allowed with" in refused(*close, "--seal", "--undo", expected=2)
    assert run(*close, "--seal-now")[:2] == (0, "sealed with 5 reports; their ids are gone\n")
    assert "is sealed" in refused(*close, "--undo")
    assert json.loads(run("campaign", "show", campaign.id, "--json")[1])["sealed"] is not None
    assert run("campaign", "delete", campaign.id)[:2] == (0, f"campaign {campaign.id} is deleted\n")
    assert listed(run) == []
    for command in (close, (*close, "--undo"), (*close, "--seal"), ("campaign", "delete", campaign.id)):
        assert run(*command)[0] == 1
    for gone in (campaign.id, "A" * 43):
        assert "--leave-archive" not in refused("campaign", "delete", gone), "it is not the archive that is in the way"


@pytest.mark.parametrize("days", [-1, 1])
def test_who_takes_a_closing_back_reads_whether_the_document_has_ended_the_campaign(run, data, days):
    closes = (
        (datetime.now(timezone.utc) + timedelta(days=days)).replace(microsecond=0).isoformat().replace("+00:00", "Z")
    )
    ended = within(data, lambda store: publish(store, closes=closes))
    assert run("campaign", "close", ended.id)[0] == 0
    over = f"; its document ends it at {closes}" if days < 0 else ""
    assert run("campaign", "close", ended.id, "--undo")[:2] == (0, f"reopened with 0 reports{over}\n")


def test_reports_that_two_merged_stores_had_are_told_wherever_they_count(run, campaign, data, tmp_path):
    merged, both = tmp_path / "both", ["--data", tmp_path / "both"]
    code, out, _ = run("merge", data, data, "-o", merged)
    assert (code, "10 reports or shares, 5 of them counted twice: both stores had them" in out) == (0, True)
    assert run("fsck", *both)[0] == 0
    assert logged(run, *both) == [("merge stores", f"{data} and {data}", "done")]
    assert logged(run) == []
    for command in (["campaign", "show"], ["estimates"], ["train", "--anyway"]):
        explained = [] if command == ["estimates"] else ["--explain"]
        out = run(*command, campaign.id, *explained, *both)[1]
        assert "Counted twice, by stores that were merged: 5 reports, 5 at most." in out, command
        assert "not for the devices, 5 at most, that two merged stores had both counted" in out, command
    told = json.loads(run("estimates", campaign.id, "--json", *both)[1])
    assert told["counted_twice"] == {"known": 5, "at_most": 5}
    assert told["published"]["colluding"] == 10
    assert told["published"]["epsilon"] == campaign.realised_epsilon


def test_deleting_a_campaign_takes_its_archive_along_or_leaves_it_on_a_word(run, data, tmp_path, monkeypatch):
    archive = tmp_path / "archive"
    monkeypatch.setenv("LDP_AGGREGATOR_ARCHIVE", str(archive))
    for more, said, left in (("--leave-archive", "is deleted\n", True), ("", "and its archived reports\n", False)):
        made = within(data, lambda store, title=f"Archived {more}": filled(store, title=title))
        (archive / made.id / "reports").mkdir(parents=True)
        assert run("campaign", "close", made.id)[0] == 0
        code, out, _ = run("campaign", "delete", made.id, *more.split())
        assert (code, out.endswith(said), (archive / made.id).exists()) == (0, True, left)


def test_a_deletion_finds_the_archive_that_a_server_wrote_to_also_where_it_is_not_set(
    run, refused, data, campaign, tmp_path
):
    archive = tmp_path / "archive"

    def archived(address):
        settings = read_settings(flags={"archive": str(address)})
        within(data, lambda store: counts_of(store, settings))

    assert run("campaign", "close", campaign.id)[0] == 0
    (tmp_path / "a file").write_bytes(b"")
    archived(tmp_path / "a file")
    assert "--leave-archive deletes the campaign" in refused("campaign", "delete", campaign.id)
    archived(archive)
    (archive / campaign.id / "reports").mkdir(parents=True)
    run("backup", tmp_path / "copy")
    run("restore", tmp_path / "copy", "--data", tmp_path / "new")
    assert run("campaign", "delete", campaign.id, "--data", tmp_path / "new")[1].endswith("is deleted\n")
    assert (archive / campaign.id).exists(), "it is the archive of another store"
    assert run("campaign", "delete", campaign.id)[1].endswith("and its archived reports\n")
    assert not (archive / campaign.id).exists()


def test_a_campaign_is_not_sealed_while_its_archive_has_files_that_wait_for_their_commit(run, refused, data, tmp_path):
    archive = tmp_path / "archive"

    async def killed(store):
        await store.note_archive(str(archive))
        made = await publish(store, title="Archived")
        group = [submission(made, range(7))]
        Archive(open_place(str(archive)), 4).write(group)
        await store.count(group)
        await store.close_campaign(made.id)
        return made

    made = within(data, killed)
    for flag in ("--seal-now", "--seal"):
        assert "files of its archive wait for their commit" in refused("campaign", "close", made.id, flag)
    with Daemon(data, LDP_AGGREGATOR_ARCHIVE=str(archive)) as daemon:
        assert run("campaign", "close", made.id, "--seal-now")[:2] == (0, "sealed with 7 reports; their ids are gone\n")
        assert run("campaign", "close", made.id, "--seal-now")[0] == 0
        daemon.stop()
    assert "counted: 7 reports;" in run("fsck", made.id, "--archive", archive, "--count-only")[1]


def test_an_archive_is_counted_again_and_held_to_the_store(run, refused, data, campaign, tmp_path, monkeypatch):
    archive = tmp_path / "archive"
    monkeypatch.setattr("ldp_aggregator.archive.recount.ProcessPoolExecutor", lambda n, **_: ThreadPoolExecutor(n))

    async def archived(store):
        made = await publish(store, title="Archived")
        await ArchivedCounts(store, Archive(open_place(str(archive)), 4)).count([submission(made, range(7))])
        return made

    made = within(data, archived)
    fsck = ("fsck", made.id, "--archive", archive)
    code, out, _ = run(*fsck)
    assert (code, "counted: 7 reports;" in out, "the same tally, bit for bit" in out) == (0, True, True)
    told = json.loads(run(*fsck, "--json")[1])
    assert (told["campaign"], told["reports"], told["equals_store"]) == (made.id, 7, True)
    within(data, lambda store: count(store, made, range(7, 9)))
    code, out, err = run(*fsck)
    assert (code, err, "another tally" in out) == (1, "", True)
    code, out, _ = run(*fsck, "--count-only", "--data", tmp_path / "none")
    assert (code, out.count("\n")) == (0, 1), "several stores may have one archive"
    assert "no campaign has the id" in refused("fsck", "A" * 43, "--archive", archive)
    for wrong in (["--archive", archive], ["--count-only"], [made.id], ["--json"], [*fsck[1:], "--take-out-damaged"]):
        assert "--archive" in refused("fsck", *wrong, expected=2)


def test_a_server_that_is_well_says_what_it_does_on_one_screen(run, refused, campaign, data, tmp_path, monkeypatch):
    monkeypatch.setattr(maintenance, "BETWEEN", 0.05)
    with Daemon(data) as daemon:
        assert post(daemon.public, campaign, encode_upload([cell_report(campaign, 5)], campaign))[0] == 200
        code, out, err = run("status", "--operations", daemon.operations)
        assert (code, err) == (0, "")
        assert out.splitlines()[0] == f"{daemon.operations}: healthy"
        assert "1 counted since the start;" in out
        assert "campaigns 1 open of 1" in out
        assert f"  {campaign.id[:8]}  open" in out
        assert "none is in the log" in out
        assert len(out.splitlines()) <= 24
        other = tmp_path / "other"
        served, elsewhere = (within(folder, lambda store: store.origin()).generation for folder in (data, other))
        assert f"store     {served}" in out
        code, out, _ = run("status", "--operations", daemon.operations, "--data", other)
        assert code == 1
        assert f"what answers serves the store {served}, and the campaigns are of {elsewhere}" in out
        daemon.stop()
    code, out, _ = run("status", "--operations", daemon.operations)
    assert (code, "not healthy" in out) == (1, True)
    assert f"nothing answers at {daemon.operations}" in out
    assert "campaigns 1 open of 1" in out
    assert "no http:// address" in refused("status", "--operations", "file:///etc/passwd", expected=2)


@pytest.fixture
def campaign_id(weather):
    return weather("--uploads-need-token", "relay")


def tokens(run):
    return {token["name"]: token for token in json.loads(run("token", "list", "--json")[1])}


def test_every_command_that_changes_something_leaves_an_entry_with_its_user(run, campaign_id):
    commands = [
        (("token", "create", "--scope", "relay", "--name", "one", "--campaign", campaign_id), 0),
        (("token", "create", "--in-place-of", "one", "--name", "two", "--overlap", "7"), 0),
        (("token", "revoke", "two"), 0),
        (("campaign", "uploads", campaign_id, "device"), 0),
        (("campaign", "uploads", campaign_id, "anybody"), 0),
        (("campaign", "uploads", campaign_id, "admin"), 2),
        (("campaign", "uploads", "A" * 43, "relay"), 1),
        (("train", campaign_id), 1),
        (("campaign", "delete", campaign_id), 1),
        (("campaign", "close", campaign_id), 0),
        (("campaign", "delete", campaign_id), 0),
    ]
    assert "uploads_need_token: relay" in run("campaign", "show", campaign_id)[1]
    for command, code in commands:
        assert run(*command)[0] == code, command
        if "anybody" in command:
            assert listed(run)[0]["uploads_need_token"] is None
    done = ("create campaign", "create token", "rotate token", "revoke token")
    done += ("let uploads need a token of scope device", "let uploads need no token")
    failed = ("publish model", "delete campaign")
    assert [(act, end) for act, _, end in logged(run)] == [
        *((act, "done") for act in done),
        *((act, "failed") for act in failed),
        *((act, "done") for act in ("close campaign", "delete campaign")),
    ]
    entries = json.loads(run("status", "--log", "--json")[1])
    assert {entry["actor"] for entry in entries} == {f"command line ({getpass.getuser()})"}
    assert [act for act, *_ in logged(run, "--last", "1")] == ["delete campaign"]
    assert len(logged(run, "--campaign", campaign_id)) == 7
    assert "one" in entries[1]["detail"]
    assert campaign_id in run("status", "--log")[1]


def test_a_token_expires_and_is_for_its_campaigns_as_is_the_one_that_takes_its_place(run, refused, campaign_id):
    create = ("token", "create", "--scope", "relay")
    assert run(*create, "--name", "one", "--expires-in", "30", "--campaign", campaign_id)[0] == 0
    one = tokens(run)["one"]
    created, expires = (datetime.fromisoformat(one[moment].replace("Z", "+00:00")) for moment in ("created", "expires"))
    assert ((expires - created).days, one["campaigns"]) == (30, [campaign_id])
    assert campaign_id in run("token", "list")[1]
    assert "no campaign has the id" in refused(*create, "--campaign", "A" * 43)
    for wrong in ("0", "-1", "soon", "nan", "1e400"):
        assert run(*create, f"--expires-in={wrong}")[0] == 2
    text = run("token", "create", "--in-place-of", "one", "--name", "two", "--overlap", "0.5")[1].strip()
    states = tokens(run)
    assert (len(text) >= 43, states["one"]["revoked"]) == (True, None)
    assert states["one"]["expires"] < one["expires"]
    assert states["two"]["campaigns"] == [campaign_id]
    assert run("token", "revoke", "one")[0] == 0, "the overlap can be ended"
    again = run(*create[:2], "--in-place-of", "two", "--name", "three", "--expires-in", "1")
    assert again[0] == 0
    told = [detail for act, detail, _ in logged(run) if act in ("create token", "rotate token")]
    assert told[0] == f"one, scope relay, until {one['expires']}, for {campaign_id}"
    assert told[1] == f"one, in its place two, scope relay, for {campaign_id}"
    assert all(token["node"] is None for token in tokens(run).values()), "only a node's token names one"
    for wrong, says in (
        (("--scope", "relay", "--overlap", "1"), "--overlap is about an old token"),
        (("--in-place-of", "three", "--scope", "relay"), "leave --scope and --campaign out"),
        (("--in-place-of", "three", "--campaign", campaign_id), "leave --scope and --campaign out"),
    ):
        assert says in refused("token", "create", *wrong, expected=2)
