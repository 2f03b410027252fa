"""Storages of earlier versions, frozen with an answer that waits: they open, and deliver it."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

FROZEN = Path(__file__).resolve().parent / "storages"


@pytest.mark.parametrize("version", ["486d5257", "713fa205"])
def test_a_storage_of_an_earlier_version_opens_and_delivers_what_it_has_queued(version, program, language, tmp_path):
    """Each was made by the code of that commit."""
    folder = tmp_path / "device"
    shutil.copytree(FROZEN / f"{language}-{version}", folder)
    (report,) = re.findall(r'"id": ?"([0-9a-f]{32})"', (folder / "device").read_text(encoding="utf-8"))
    done = subprocess.run([*program, "frozen", folder], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    first, delivered, upload, after = done.stdout.splitlines()
    assert (first, delivered) == ("answered 1", "true")
    assert report in upload
    assert after == f"arrived {report} 0 1"
