"""Places of archives."""

import os
import sys
import uuid

import pytest

from ldp_aggregator.archive.locations import open_place
from ldp_aggregator.store import StoreError


@pytest.fixture(params=["folder", "file", "memory"])
def place(request, tmp_path):
    if request.param == "memory":
        return open_place(f"memory://{uuid.uuid4().hex}/deep")
    folder = tmp_path / "some where"
    return open_place(str(folder) if request.param == "folder" else f"file://{folder}")


def test_what_was_put_is_listed_read_moved_and_removed(place):
    assert place.names("a/b") == []
    place.put("a/b/two", b"2")
    place.put("a/b/one", b"1")
    place.put("a/c", b"elsewhere")
    assert place.names("a/b") == ["a/b/one", "a/b/two"]
    assert place.read("a/b/one") == b"1"
    assert place.move("a/b/one", "d/one")
    assert not place.move("a/b/one", "d/one")
    assert place.names("a/b") == ["a/b/two"]
    assert place.read("d/one") == b"1"
    assert open_place(place.url).read("d/one") == b"1", "it is opened again by its address"
    place.remove("d/one")
    place.remove("d/one")
    assert place.names("d") == []
    with pytest.raises(StoreError, match=r"one.* cannot be read"):
        place.read("d/one")


@pytest.mark.parametrize("url", ["", " ", "nosuch://bucket/path", "file://elsewhere/path"])
def test_an_address_that_nothing_opens_is_refused(url):
    with pytest.raises(StoreError):
        open_place(url)


def test_a_folder_is_its_owners_alone_and_keeps_its_place_when_the_process_changes_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = open_place("relative")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    place.put("a/one", b"1")
    file = tmp_path / "relative" / "a" / "one"
    assert file.read_bytes() == b"1"
    if sys.platform != "win32":  # Windows has no modes.
        assert [path.stat().st_mode & 0o077 for path in (file, file.parent, file.parent.parent)] == [0, 0, 0]


def test_a_file_that_cannot_be_written_or_is_half_written_is_not_there_at_all(tmp_path, monkeypatch):
    place = open_place(str(tmp_path))

    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match="cannot be written: No space left on device"):
            place.put("one", b"1")
    assert list(tmp_path.iterdir()) == []
    place.put("a/one", b"1")
    (tmp_path / "a" / ".two.123").write_bytes(b"ha")
    assert place.names("a") == ["a/one"], "half-written files of others are not listed"
