"""A disk that is full or read-only, on phones: nobody is asked, and the next step says why."""

import subprocess

import pytest
from drafts import draft, text

from ldp_protocols import Campaign

# A file may have no bytes: writing fails as on a full disk.
FULL = ["sh", "-c", 'trap "" XFSZ; ulimit -f 0; exec "$@"', "sh"]
BIND = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'


@pytest.fixture
def document(tmp_path):
    path = tmp_path / "document.json"
    path.write_bytes(Campaign.compile(draft(text("u", "1", "2"))).document)
    return path


@pytest.fixture
def decide(program, document):
    """What is said before a yes and after it, with a device in a folder."""

    def told(folder, *before):
        command = [*before, *program, "decide", str(document), str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return told


@pytest.mark.parametrize("folder", ["device", "new/device"])
def test_a_full_disk(decide, tmp_path, folder):
    place = tmp_path / folder
    assert decide(place, *FULL) == ["storage-full", "storage-full"]
    assert decide(place) == ["goes on", "goes on"]


def test_a_disk_that_is_read_only(decide, tmp_path):
    place = tmp_path / "device"
    place.mkdir()
    before = ["unshare", "-m", "sh", "-c", BIND, str(place)]
    if subprocess.run([*before, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this user mounts nothing")
    assert decide(place, *before) == ["storage-read-only", "storage-read-only"]
