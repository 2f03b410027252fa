"""A disk that is full, a file that is read-only or damaged: a clear status, a living app, one perturbation."""

import os
import random
import shutil
import sqlite3
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from forking import holds_in_a_child, needs_fork
from power_cuts import Disk, lay_out
from records import RECORD

from ldp_client import ConsentError, StorageError
from ldp_client.errors import STORAGE_PROBLEMS
from ldp_client.storage.location import Marker

CONNECT = sqlite3.connect
"""How the storage opens its file."""


@pytest.fixture
def wide_campaign(server, draft):
    """Its report does not fit on a page of the database, and none is about the label alone."""
    values = [f"value {number}" for number in range(3000)]
    asked = {
        "label": {**draft["label"], "weight": 0},
        "features": [{"name": "age", "kind": "categorical", "missing": False, "values": values}],
        "privacy": {"epsilon": 1, "discrete": "she"},
    }
    return server.publish({**draft, **asked})


def test_a_full_disk_stops_the_contribution_and_an_answer_that_was_not_stored_was_never_observed(
    join, server, wide_campaign, tmp_path, monkeypatch, code_of
):
    """What is drawn anew is the noise; the question is the same at every try."""

    def full(*arguments, **options):
        connection = CONNECT(*arguments, **options)
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    device, part = join(of=wide_campaign, storage=tmp_path / "device.db")
    monkeypatch.setattr(sqlite3, "connect", full)
    for _ in range(3):
        assert code_of(StorageError, part.contribute, {"age": "value 7"}, "yes") == "storage-full"
        status = part.status()
        assert (status.contributed, status.queued, status.total_epsilon) == (False, 0, 0)
        assert device.run_once(1)
    assert not server.uploads
    monkeypatch.setattr(sqlite3, "connect", CONNECT)
    assert part.refusal() is None
    part.contribute({"age": "value 8"}, "no")
    assert device.run_once(5)
    assert len(server.uploads) == server.counted(wide_campaign.id) == 1


@pytest.mark.parametrize(
    ("said", "code"), [("database or disk is full", "storage-full"), ("disk I/O error", "storage-unavailable")]
)
def test_a_disk_that_fails_after_the_upload_sends_the_same_bytes(
    join, server, campaign, tmp_path, monkeypatch, said, code
):
    class Full(sqlite3.Connection):
        def execute(self, statement, *arguments):
            if statement.startswith("DELETE"):
                raise sqlite3.OperationalError(said)
            return super().execute(statement, *arguments)

    device, part = join(storage=tmp_path / "device.db", answered=True)
    monkeypatch.setattr(sqlite3, "connect", lambda *names, **options: CONNECT(*names, factory=Full, **options))
    assert not device.run_once(30)
    assert part.status().problem == code
    assert 2 <= len(server.uploads) < 40
    monkeypatch.setattr(sqlite3, "connect", CONNECT)
    assert device.run_once(1e5)
    assert len(set(server.uploads)) == 1
    assert server.counted(campaign.id) == 1


def test_a_device_answers_with_the_same_bytes_after_a_power_cut_at_every_point(
    join, server, campaign, all_campaign, tmp_path, monkeypatch
):
    """Two campaigns on one file. What was sent is sent again as it was, and nobody is taken for a copy."""
    monkeypatch.setattr(Marker, "_place", lambda marker, descriptor: {"inode": "1"})
    folder, asked = tmp_path / "device", (campaign, all_campaign)
    folder.mkdir()

    def answered(of, place):
        """A device on this file that has answered."""
        device, _ = join(storage=place / "ldp.sqlite", of=of, max_epsilon=8, answered=True)
        return device

    def sent_by(device):
        before = len(server.uploads)
        assert device.run_once(5)
        return server.uploads[before:]

    disk = Disk(folder, lambda: tuple(server.uploads), extra=True)
    with disk.watched(monkeypatch):
        bodies = [one for of in asked for one in sent_by(answered(of, folder))]
    states = list(disk.states())
    assert len(states) > 8
    for number, (told, received, files) in enumerate(states):
        place = lay_out(files, tmp_path / f"state {number}")
        for of, body in zip(asked, bodies, strict=True):
            device = answered(of, place)  # Nobody is taken for a copy.
            if body in received:
                assert set(sent_by(device)) <= set(bodies), told
    assert [server.counted(of.id) for of in asked] == [1, 4]


def test_nothing_is_sent_where_it_cannot_be_noted_that_it_begins(join, server, tmp_path, monkeypatch):
    path = tmp_path / "device.db"
    device, part = join(storage=path, answered=True)
    monkeypatch.setattr(sqlite3, "connect", lambda name, **how: CONNECT(f"file:{name}?mode=ro", uri=True, **how))
    assert not device.run_once(5)
    assert part.status().problem == "storage-read-only"
    assert not server.uploads
    monkeypatch.setattr(sqlite3, "connect", CONNECT)
    assert device.run_once(1e5)
    assert len(server.uploads) == 1


@needs_fork
def test_a_file_without_write_permission_is_told(join, code_of):
    join(answered=True)  # So that the child, who may not read everything, has imported what it needs.
    with tempfile.TemporaryDirectory() as folder:
        device, part = join(storage=Path(folder) / "device.db")

        def is_told():
            if os.geteuid() == 0:
                os.seteuid(65534)
            code = code_of(StorageError, part.contribute, RECORD, "yes")
            status = part.status()
            told = (code, status.contributed, status.consent, device.run_once(1))
            with pytest.raises(StorageError):
                part.withdraw()
            return told == ("storage-read-only", False, True, True) and not part.status().consent

        (Path(folder) / "device.db").chmod(0o444)
        Path(folder).chmod(0o555)
        assert holds_in_a_child(is_told)
        Path(folder).chmod(0o755)


def _damage(good, chance):
    kind = chance.randrange(4)
    damaged = bytearray(good)
    if kind == 0:
        for _ in range(chance.choice([1, 4, 64])):
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    elif kind == 1:
        del damaged[chance.randrange(1, len(damaged)) :]
    else:
        # A stretch anywhere, a page, or its header, which may make a table look empty.
        step, length = (1, 512) if kind == 2 else (4096, chance.choice([8, 100, 4096]))
        start = chance.randrange(0, len(damaged), step)
        damaged[start : start + length] = bytes(min(length, len(damaged) - start))
    return bytes(damaged)


def _outcome(part, first, *, grant=False):
    """What a contribution with another record comes to: the first receipt, or the code of an error."""
    try:
        if grant:
            part.grant()
        receipt = part.contribute({"age": "old"}, "no")
    except (StorageError, ConsentError) as error:
        return error.code
    return "receipt" if replace(receipt, fate=first.fate) == first else "another receipt"


def test_a_damaged_file_is_told_and_never_answers_again(join, server, campaign, perturbations, tmp_path):
    good = tmp_path / "good.db"
    receipt = join(storage=good)[1].contribute(RECORD, "yes")
    bytes_of_good = good.read_bytes()
    chance = random.Random(20261121)
    told = set()
    for number in range(150):
        path = tmp_path / f"{number}.db"
        path.write_bytes(_damage(bytes_of_good, chance))
        device, part = join(storage=path, granted=False)
        part.load(campaign.document)
        # As on the device itself, where nobody has copied the file.
        shutil.copy(f"{good}.here", f"{path}.here")
        device.status()
        device.run_once(2)
        told.add(_outcome(part, receipt))
        told.add(_outcome(part, receipt, grant=True))
        assert device.status().problem in {None, *STORAGE_PROBLEMS}
    assert len(perturbations) == 1
    assert {"storage-corrupt", "receipt"} <= told <= {"receipt", "consent-missing", *STORAGE_PROBLEMS}
    assert len(set(server.uploads)) <= 1
    shutil.rmtree(tmp_path)


def test_a_folder_without_write_permission_is_told_before_anybody_has_decided(join):
    """Nobody is asked whom the disk could not remember, and the device's status says why."""
    join(granted=False)[1].next_step()  # So that the child, who may not read everything, has imported what it needs.
    with tempfile.TemporaryDirectory() as folder:
        device, part = join(storage=Path(folder) / "device.db", granted=False)

        def is_told():
            if os.geteuid() == 0:
                os.seteuid(65534)
            told = (part.next_step(), part.decide(agreed=True), part.status().problem, device.status().problem)
            of_another = device.scope("user-7").status().problem
            code = "storage-read-only"
            return (*told, of_another) == (("nothing", code), ("nothing", code), code, code, None)

        Path(folder).chmod(0o555)
        assert holds_in_a_child(is_told)
        Path(folder).chmod(0o755)


def test_a_file_that_is_no_database_is_told_and_left_alone_and_does_not_stop_the_classifier(
    join, server, campaign, model, tmp_path, code_of
):
    server.publish_model(campaign.id, model)
    path = tmp_path / "device.db"
    path.write_bytes(b"this is somebody's letter, not a database " * 100)
    before = path.read_bytes()
    device, part = join(storage=path, granted=False)
    part.load(campaign.document)
    assert code_of(StorageError, part.grant) == "storage-corrupt"
    assert device.status().problem == part.status().problem == "storage-corrupt"
    assert not part.status().consent
    assert not device.run_once(0.1)
    assert path.read_bytes() == before
    assert code_of(StorageError, device.ledger) == "storage-corrupt"
    assert part.next_step() == part.decide(agreed=True) == part.decide(agreed=False) == ("nothing", "storage-corrupt")
    assert part.classifier().predict({"age": "old"}) == "no"
