"""The device's storage where the system fails it: a full disk, a folder that nobody may write to."""

import subprocess

import pytest
from drafts import draft, text

from ldp_protocols import Campaign


@pytest.fixture
def document(tmp_path):
    path = tmp_path / "document.json"
    path.write_bytes(Campaign.compile(draft(text("u", "1", "2"))).document)
    return path


def contribute(swift, document, folder, *limits):
    command = [*limits, *swift, "contribute", str(document), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout.split()


def test_on_a_full_disk_nothing_is_answered_and_later_it_is(swift, document, tmp_path):
    # A file that may have no more bytes than these: writing beyond them fails, as on a full disk.
    full = ["sh", "-c", 'trap "" XFSZ; ulimit -f "$1"; shift; exec "$@"', "full"]
    for blocks in (0, 1):
        assert contribute(swift, document, tmp_path / f"device {blocks}", *full, str(blocks)) == [
            "storage-full",
            "0",
        ]
        assert contribute(swift, document, tmp_path / f"device {blocks}") == ["1"]


def test_a_folder_that_cannot_be_made_is_told(swift, document, tmp_path):
    (tmp_path / "file").write_text("no folder")
    assert contribute(swift, document, tmp_path / "file" / "device")[0] == "storage-unavailable"
