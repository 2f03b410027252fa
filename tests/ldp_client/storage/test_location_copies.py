"""A copied or restored storage file is recognised, and answers nothing that the original may have answered."""

import os
import shutil
from pathlib import Path

import pytest
from records import RECORD

import ldp_client.campaign
import ldp_client.delivery.install
from ldp_client import RefusedError
from ldp_client.storage import location

CONTAINER = {"machine": "m", "serial": "s", "layer": "upperdir=/layers/7/diff"}


@pytest.fixture
def other(server, draft):
    return server.publish({**draft, "title": "Another campaign"})


@pytest.fixture
def original(join, tmp_path, other):
    """A ledger that has agreed to two campaigns and answered one."""
    path = tmp_path / "original" / "ldp.sqlite"
    path.parent.mkdir()
    device, _ = join(storage=path, answered=True)
    join(device=device, of=other)
    return path


def refused(join, path, other, user=None):
    """Why the device in a file, or a user of it, would not answer the campaign that it has not answered."""
    device, _ = join(storage=path, granted=False)
    _, part = join(device=device.scope(user) if user else device, of=other, granted=False)
    part.load(other.document)
    refusal = part.refusal()
    if refusal is not None:
        with pytest.raises(RefusedError) as caught:
            part.contribute(RECORD, "yes")
        assert caught.value.code == refusal.code
        return refusal.code
    part.contribute(RECORD, "yes")
    return None


def test_a_backup_without_marker_a_folder_with_it_and_an_older_state_are_recognised(join, original, other, tmp_path):
    before = original.read_bytes()
    shutil.copy(original, tmp_path / "ldp.sqlite")
    shutil.copytree(original.parent, tmp_path / "clone")
    for copy in (tmp_path / "ldp.sqlite", tmp_path / "clone" / "ldp.sqlite"):
        assert refused(join, copy, other) == "copied-storage"
    assert refused(join, original, other) is None
    original.write_bytes(before)
    assert refused(join, original, other) == "copied-storage"


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """What an app may read about its machine, for files on the root file system: as in a container of this layer."""
    files = {name: tmp_path / name for name in ("MACHINE_IDS", "HARDWARE_IDS", "MOUNTS")}

    def is_now(*, machine="", serial="", layer="", root=True):
        device = tmp_path.stat().st_dev
        number = f"{os.major(device)}:{os.minor(device)}"
        mounts = (
            f"22 1 0:21 / /proc rw - proc proc rw\n27 1 {number} / / rw - overlay overlay rw,lowerdir=/a,{layer},x=y\n"
        )
        for name, text in (("MACHINE_IDS", machine), ("HARDWARE_IDS", serial), ("MOUNTS", layer and mounts)):
            files[name].write_text(text) if text else files[name].unlink(missing_ok=True)
            monkeypatch.setattr(location, name, str(files[name]) if name == "MOUNTS" else (str(files[name]),))
        here, stat = os.stat_result([0, 0, device if root else device + 1, *[0] * 7]), Path.stat
        monkeypatch.setattr(Path, "stat", lambda path, **how: here if str(path) == "/" else stat(path, **how))

    return is_now


@pytest.mark.parametrize("fact", [{"machine": "n"}, {"serial": "t"}, {"layer": "upperdir=/layers/8/diff"}])
def test_a_clone_of_the_machine_the_board_or_the_container_with_its_files_is_known(join, machine, request, other, fact):
    machine(**CONTAINER)
    original = request.getfixturevalue("original")
    machine(**{**CONTAINER, **fact})
    assert refused(join, original, other) == "copied-storage"
    machine(**CONTAINER)
    assert refused(join, original, other) is None


@pytest.mark.parametrize(
    ("then", "now"),
    [
        (CONTAINER, {}),
        ({}, CONTAINER),
        ({**CONTAINER, "root": False}, {"machine": "m", "serial": "t", "layer": "upperdir=/else", "root": False}),
        ({"machine": "m", "serial": "s"}, {"machine": "m", "layer": "upperdir=/layers/8/diff"}),
    ],
    ids=["no longer readable", "readable only now", "a volume on another machine", "other facts"],
)
def test_what_cannot_be_read_or_is_not_about_the_file_locks_nobody_out(join, machine, request, other, then, now):
    machine(**then)
    original = request.getfixturevalue("original")
    machine(**now)
    assert refused(join, original, other) is None


def test_an_app_that_may_not_look_around_is_locked_out_of_nothing(join, original, other, monkeypatch):
    """A sandbox may forbid everything but the app's own folder."""
    stat, read_bytes = Path.stat, Path.read_bytes

    def forbid(call, path, **options):
        if not path.is_relative_to(original.parents[1]):
            raise PermissionError
        return call(path, **options)

    monkeypatch.setattr(Path, "stat", lambda path, **options: forbid(stat, path, **options))
    monkeypatch.setattr(Path, "read_bytes", lambda path: forbid(read_bytes, path))
    assert refused(join, original, other) is None


@pytest.mark.parametrize("damage", [b"", b"\n", b"inode", b"inode:\n\n", b"\xff\xfe:\x00", b"inode:0,machine"])
def test_a_marker_that_says_nothing_vouches_for_nothing(join, original, other, damage):
    original.with_name("ldp.sqlite.here").write_bytes(damage)
    assert refused(join, original, other) == "copied-storage"


def test_a_copy_still_knows_what_it_answered_and_sends_the_same_bytes(join, original, server, campaign, tmp_path):
    shutil.copy(original, tmp_path / "ldp.sqlite")
    (copy, part), (device, _) = (join(storage=path, granted=False) for path in (tmp_path / "ldp.sqlite", original))
    assert part.contribute(RECORD, "no").fate == "waiting"
    assert copy.run_once(5)
    assert device.run_once(5)
    assert len(server.uploads) == 2
    assert len(set(server.uploads)) == 1


def test_a_file_that_was_moved_is_taken_up_when_the_app_vouches_for_it(join, original, other, tmp_path):
    moved = tmp_path / "ldp.sqlite"
    shutil.copy(original, moved)
    original.unlink()
    join(storage=moved, granted=False)[0].adopt()
    assert refused(join, moved, other) is None


def test_users_of_a_copied_backend_are_refused_too(join, other, tmp_path):
    path = tmp_path / "users.db"
    device, _ = join(storage=path, granted=False)
    join(device=device.scope("user"), of=other)
    shutil.copy(path, tmp_path / "copy.db")
    assert refused(join, tmp_path / "copy.db", other, "user") == "copied-storage"


def test_a_power_cut_between_marker_and_ledger_strands_nobody(join, original, other, server, draft, monkeypatch):
    """The marker is written first; whether the ledger's commit then holds or not, the device goes on."""

    def cut(*_, **__):
        raise KeyboardInterrupt

    _, part = join(storage=original, of=other, granted=False)
    monkeypatch.setattr(ldp_client.campaign, "write_installation", cut)
    with pytest.raises(KeyboardInterrupt):
        part.contribute(RECORD, "yes")
    monkeypatch.undo()
    assert not part.status().contributed
    monkeypatch.setattr(ldp_client.delivery.install.Install, "settle_mark", cut)
    with pytest.raises(KeyboardInterrupt):
        part.contribute(RECORD, "yes")
    monkeypatch.undo()
    assert part.status().contributed
    third = server.publish({**draft, "title": "A third campaign"})
    join(storage=original, of=third)
    assert refused(join, original, third) is None


def test_a_second_consent_that_could_not_be_kept_leaves_the_storage_its_own(
    join, original, other, server, draft, monkeypatch
):
    """The marker is written once, with the first consent: what is rolled back takes no mark along."""

    def fails(*_, **__):
        raise KeyboardInterrupt

    third = server.publish({**draft, "title": "A third campaign"})
    monkeypatch.setattr(ldp_client.campaign, "write_installation", fails)
    with pytest.raises(KeyboardInterrupt):
        join(storage=original, of=third)
    monkeypatch.undo()
    assert refused(join, original, other) is None
