"""What simulated populations cost, beside two published libraries in the same run.

    python benchmarks/simulation.py [--json] [--peers DIR] [--no-peers]

``vector``: a million devices, OUE on a domain of 128: draw, perturb into wire payloads, count, estimate; in a process
of its own, whose peak memory is reported too. ``counts``: a billion devices, 42 features. Peers: the same pipeline
(perturb, aggregate, estimate) with pure-ldp and multi-freq-ldpy, which are installed from the package index into an
environment of their own (kept in DIR, if given); they take fewer users, and what compares is processor time per user:
all of them run on one core. The best of three alternating runs of each counts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

DEVICES = 1_000_000
DOMAIN = 128
EPSILON = 1.0
PEER_USERS = 20_000
ROUNDS = 3
PEER_PACKAGES = ("pure-ldp", "multi-freq-ldpy", "scikit-learn", "statsmodels", "xxhash<4")
"""The last three are what the first two need and do not declare."""

VECTOR = f"""
import json, resource, time
import numpy as np, pandas as pd
from ldp_aggregator import estimate
from ldp_protocols import Campaign
from ldp_simulations import simulate
campaign = Campaign.compile({{"version": 1, "title": "t", "label": {{"name": "y", "classes": ["0", "1"], "weight": 0}},
    "features": [{{"name": "x", "kind": "categorical", "missing": False,
                   "values": [str(v) for v in range({DOMAIN // 2})]}}],
    "privacy": {{"epsilon": {EPSILON}, "discrete": "oue"}}}})
rng = np.random.default_rng(1)
frame = pd.DataFrame({{"x": rng.integers(0, {DOMAIN // 2}, size={DEVICES})}})
labels = pd.Series(rng.integers(0, 2, size={DEVICES}))
simulate(campaign, frame[:1000], labels[:1000], 0)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
wall, started = time.perf_counter(), time.process_time()
estimates = estimate(campaign, simulate(campaign, frame, labels, 1))
wall, seconds = time.perf_counter() - wall, time.process_time() - started
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
truth = np.bincount(frame["x"] * 2 + labels, minlength={DOMAIN}) / {DEVICES}
error = float(np.sqrt(np.mean((estimates[0].cells.value - truth) ** 2)))
print(json.dumps({{"users": {DEVICES}, "cpu_seconds": seconds, "seconds": wall, "added_mib": (peak - before) / 1024,
    "peak_mib": peak / 1024, "error": error}}))
"""

COUNTS = """
import json, time
import numpy as np, pandas as pd
from ldp_aggregator import estimate
from ldp_protocols import Campaign
from ldp_simulations import simulate
names = [f"x{i}" for i in range(42)]
campaign = Campaign.compile({"version": 1, "title": "t", "label": {"name": "y", "classes": ["a", "b", "c"]},
    "features": [{"name": name, "kind": "categorical", "missing": False, "values": ["x", "o", "b"]} for name in names],
    "privacy": {"epsilon": 1.0}})
rng = np.random.default_rng(1)
frame = pd.DataFrame({name: rng.choice(["x", "o", "b"], size=67_557) for name in names})
labels = pd.Series(rng.choice(["a", "b", "c"], size=67_557))
wall, started = time.perf_counter(), time.process_time()
tally = simulate(campaign, frame, labels, 1, fidelity="counts", devices=1_000_000_000)
wall, seconds = time.perf_counter() - wall, time.process_time() - started
print(json.dumps({"users": int(tally.n.sum()), "cpu_seconds": seconds, "seconds": wall}))
"""

_PEER = """
import json, time, warnings
import numpy as np
warnings.filterwarnings("ignore")
values = np.random.default_rng(1).integers(0, {domain}, size={users}).tolist()
truth = np.bincount(values, minlength={domain}) / {users}
{setup}
wall, started = time.perf_counter(), time.process_time()
{pipeline}
wall, seconds = time.perf_counter() - wall, time.process_time() - started
error = float(np.sqrt(np.mean((np.array(estimates) - truth) ** 2)))
print(json.dumps({{"users": {users}, "cpu_seconds": seconds, "seconds": wall, "error": error}}))
"""

PEERS = {
    "pure-ldp": (
        "from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer\n"
        f"client, server = UEClient({EPSILON}, {DOMAIN}, True, lambda v: v), "
        f"UEServer({EPSILON}, {DOMAIN}, True, lambda v: v)",
        "for value in values:\n    server.aggregate(client.privatise(value))\n"
        f"estimates = [server.estimate(v, suppress_warnings=True) / {PEER_USERS} for v in range({DOMAIN})]",
    ),
    "multi-freq-ldpy": (
        "from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client, UE_Aggregator_MI\n"
        f"UE_Client(0, {DOMAIN}, {EPSILON}, True)",  # Compiles; that is not counted.
        f"estimates = UE_Aggregator_MI([UE_Client(v, {DOMAIN}, {EPSILON}, True) for v in values], {EPSILON}, True)",
    ),
}


def run(python: str, program: str) -> dict[str, Any]:
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True)
    figures: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return figures


def peer_python(folder: Path) -> str:
    """An interpreter with the peers; installs them where they are not yet."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PEER_PACKAGES], check=True)
    return str(python)


def measure(peers: Path | None) -> dict[str, Any]:
    """The best of :data:`ROUNDS` alternating runs of each: what else goes on on this machine only ever adds."""
    programs = {"vector": (sys.executable, VECTOR), "counts": (sys.executable, COUNTS)}
    if peers is not None:
        python = peer_python(peers)
        for name, (setup, pipeline) in PEERS.items():
            programs[name] = python, _PEER.format(domain=DOMAIN, users=PEER_USERS, setup=setup, pipeline=pipeline)
    rounds = [{name: run(*program) for name, program in programs.items()} for _ in range(ROUNDS)]
    figures: dict[str, Any] = {
        name: min((one[name] for one in rounds), key=lambda figures: float(figures["cpu_seconds"])) for name in programs
    }
    if peers is not None:
        each = {name: found["cpu_seconds"] / found["users"] for name, found in figures.items()}
        figures["times_the_faster_peer"] = min(each[name] for name in PEERS) / each["vector"]
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--peers", type=Path, metavar="DIR", help="keep the peers' environment there")
    parser.add_argument("--no-peers", action="store_true", help="without the other libraries")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(None if options.no_peers else options.peers or Path(folder) / "peers")
    if options.json:
        print(json.dumps(figures, indent=2))
        return
    for name, found in figures.items():
        if name == "times_the_faster_peer":
            print(f"{found:.0f} times the faster of the peers, per user")
        else:
            rate = found["cpu_seconds"] / found["users"] * 1e9
            print(f"{name:16} {found['users']:13,} users in {found['seconds']:.3f} s, {rate:,.1f} ns of processor each")
            if "added_mib" in found:
                print(f"{'':16} {found['added_mib']:.0f} MiB more than before it, {found['peak_mib']:.0f} MiB in all")


if __name__ == "__main__":
    main()
