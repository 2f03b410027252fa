"""Top-level names that an app may own, too: what is said where its ``protocols`` is found in place of ours."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
IMPORTS = (
    "from ldp_client import Device",
    "from ldp_client import perturb",
    "from ldp_client import Classifier",
    "import ldp_client.aio",
    "import ldp_client.relay",
    "import ldp_client.testing",
    "import ldp_client.command",
)


@pytest.mark.parametrize(
    ("code", "found"),
    [
        *((code, "protocols.py") for code in IMPORTS),
        (IMPORTS[0], "protocols/__init__.py"),
        (IMPORTS[0], "protocols/errors.py"),
    ],
)
def test_an_apps_own_protocols_is_named_with_what_to_do(tmp_path, found, code):
    file = tmp_path / found
    file.parent.mkdir(exist_ok=True)
    file.write_text("VERSION = 1\n")
    if found.endswith("errors.py"):
        (file.parent / "__init__.py").write_text("")
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )
    last = ran.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: ldp_client needs its own package 'protocols'"), ran.stderr
    assert str(tmp_path / found.partition("/")[0]) in last
    assert "rename that file or folder" in last
