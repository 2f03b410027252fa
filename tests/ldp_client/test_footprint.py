"""What an app takes on when it imports the client, and top-level names that it may own, too."""

import json
import subprocess
import sys
from pathlib import Path

import msgpack

ROOT = Path(__file__).resolve().parents[2]
BENCHMARK = ROOT / "benchmarks" / "client.py"

MOST_ADDED_MIB = 8

FRAMING = 10
"""Bytes of an upload with one report beside its id and its payload, at most."""

_BLOCKED = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"numpy", "pandas", "sklearn", "scipy", "aiohttp", "pydantic"}:
            raise ImportError(name + " must not be needed")
sys.meta_path.insert(0, Block())
from ldp_client import Classifier, Device
import ldp_client.aio, ldp_client.testing, ldp_client.__main__
from ldp_client.testing import FakeServer
with FakeServer() as server:
    campaign = server.publish({
        "version": 1, "title": "t", "label": {"name": "l", "classes": ["a", "b"]},
        "features": [{"name": "f", "kind": "continuous", "low": 0, "high": 1}], "privacy": {"epsilon": 1}})
    device = Device(":memory:", max_total_epsilon=1)
    part = device.campaign(server.url, campaign.id, max_epsilon=1)
    part.grant()
    part.contribute({"f": 0.5}, "a")
    assert device.run_once(10)
    assert server.counted(campaign.id) == 1
assert "numpy" not in sys.modules
"""

_MOST_MODULES = 80
"""Of the standard library and of ours together, beside those of a bare interpreter; 73 or so are loaded."""

_SLOW = {
    *("json", "pathlib", "urllib.parse", "datetime", "fractions", "msgpack"),
    *("hashlib", "ssl", "socket", "http.client", "sqlite3", "asyncio", "email", "urllib.request", "numpy"),
}
"""An app's start has no need of them: they would take it from less than four times a bare interpreter to six."""


def run(code, *flags, **options):
    command = [sys.executable, *flags, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)


def test_everything_works_with_numpy_and_its_friends_blocked():
    ran = run(_BLOCKED)
    assert ran.returncode == 0, ran.stderr


def test_an_import_leaves_the_slow_modules_for_when_they_are_needed():
    # Without site, whose .pth files may load anything.
    path = [str(ROOT), str(ROOT / "protocols"), str(Path(msgpack.__file__).parents[1])]
    code = f"import sys; sys.path += {path}; bare = set(sys.modules); from ldp_client import Device; "
    ran = run(code + "print(*sys.modules.keys() - bare)", "-S", cwd=ROOT)
    loaded = ran.stdout.split()
    assert "ldp_client.device" in loaded, ran.stderr
    assert sorted({*loaded} & _SLOW) == []
    assert len(loaded) <= _MOST_MODULES


def test_an_import_loads_nothing_but_what_loads_names_until_one_is_used_and_starts_no_thread():
    ran = run(
        "import sys, threading, ldp_client; assert threading.active_count() == 1;"
        "print(sorted(n for n in sys.modules if n.startswith(('ldp_protocols', 'ldp_client.'))))"
    )
    assert ran.stdout == "['ldp_protocols', 'ldp_protocols.names']\n", ran.stderr


def test_the_benchmark_measures_every_figure_and_an_upload_is_near_its_bound():
    command = [sys.executable, str(BENCHMARK), "--rounds", "1", "--json"]
    figures = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout)
    assert {"import_ms", "first_use_added_mib", "first_contribution_ms"} <= figures["import"].keys()
    assert figures["import"]["first_use_added_mib"] < MOST_ADDED_MIB
    for mechanism in ("de", "oue"):
        told = figures[mechanism]
        assert told["perturb_and_encode_us"] > told["least_randomness_us"] > 0
        assert told["payload_entropy_bytes"] <= told["payload_bytes"]
        assert told["bound_bytes"] <= told["upload_bytes"] <= 16 + told["payload_bytes"] + FRAMING
