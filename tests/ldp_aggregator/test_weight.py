"""What a small server has to carry: commands that only keep a store load none of the estimators' libraries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from daemon import Daemon

MOST_MIB = 50
"""Of memory of its own, about 46 on CPython 3.11; how much of libraries' files is mapped is the page cache's affair."""

_LOADED = """
import sys
from ldp_aggregator.cli.program import run
try:
    run({arguments!r})
except SystemExit:
    pass
sys.stderr.write(repr(sorted({{"pandas", "sklearn", "scipy"}} & set(sys.modules))))
"""


@pytest.mark.parametrize("command", ["serve --help", "token create --scope admin --name a", "backup copy", "fsck"])
def test_a_command_that_keeps_a_store_loads_no_tables_and_no_estimators(tmp_path, command):
    first = subprocess.run(
        [sys.executable, "-m", "ldp_aggregator", "token", "create", "--scope", "node", "--name", "n", "--data", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert first.returncode == 0, first.stderr
    arguments = [*command.split(), *([] if command.startswith("serve") else ["--data", "."])]
    ran = subprocess.run(
        [sys.executable, "-c", _LOADED.format(arguments=arguments)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ran.stderr.endswith("[]"), ran.stderr


def own_mib(process: int) -> float:
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    (kib,) = (int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon"))
    return kib / 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="resident memory is read from /proc")
def test_an_idle_server_is_small(tmp_path):
    with Daemon(tmp_path) as server:
        assert own_mib(server.process.pid) <= MOST_MIB
