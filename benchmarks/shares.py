"""Shares of eight fields at one total epsilon, beside multi-freq-ldpy and pure-ldp on the same records.

    python benchmarks/shares.py PEERS_PYTHON

``PEERS_PYTHON`` is the interpreter of an environment with benchmarks/peers/requirements.txt. Prints for each way the
root mean square error of a share over all fields, and by how much it differs from this project's on the same records,
with the standard error of that; in points. What the others cut at 0 is held against estimates that are, too.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from ldp_aggregator import estimate
from ldp_protocols import Campaign
from ldp_simulations import simulate

DEVICES, REPEATS, DRAWS = 20_000, 8, 10
"""Tables of each epsilon; on each, so many draws of this project's noise, and one of the others'."""
SIZES = (2, 2, 3, 4, 5, 8, 12, 20)
PEER = Path(__file__).parent / "peers" / "frequencies.py"


def ours(records, epsilon, seed):
    """Unbiased shares of every field, and those that are cut at 0 and add up to 1."""
    names = [f"field {place}" for place in range(len(SIZES))]
    features = [
        {"name": name, "kind": "categorical", "values": [f"v{v}" for v in range(size)], "missing": False}
        for name, size in zip(names, SIZES, strict=True)
    ]
    draft = {"version": 1, "title": "Shares", "features": features, "privacy": {"epsilon": epsilon}}
    campaign = Campaign.compile(draft)
    frame = pd.DataFrame({name: [f"v{v}" for v in column] for name, column in zip(names, records.T, strict=True)})
    found = estimate(campaign, simulate(campaign, frame, rng=seed))
    return [one.cells.value for one in found.questions], [one.processed for one in found.questions]


def error(found, truth):
    """Root mean square over fields of the root mean square over their cells, in points."""
    of_fields = [np.mean((np.array(one) - true) ** 2) for one, true in zip(found, truth, strict=True)]
    return 100 * float(np.sqrt(np.mean(of_fields)))


def main(python):
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        told = {}
        for seed in range(REPEATS):
            rng = np.random.default_rng(seed)
            shares = [rng.dirichlet(np.ones(size)) for size in SIZES]
            records = np.stack([rng.choice(size, DEVICES, p=p) for size, p in zip(SIZES, shares, strict=True)], axis=1)
            truth = [
                np.bincount(column, minlength=size) / DEVICES for column, size in zip(records.T, SIZES, strict=True)
            ]
            drawn = [ours(records, epsilon, DRAWS * seed + draw) for draw in range(DRAWS)]
            unbiased, processed = (np.mean([error(one[way], truth) for one in drawn]) for way in (0, 1))
            with tempfile.TemporaryDirectory() as folder:
                np.save(f"{folder}/records.npy", records)
                command = [python, str(PEER), f"{folder}/records.npy", str(epsilon), str(seed)]
                answer = subprocess.run(command, check=True, capture_output=True, text=True)
            for name, found in json.loads(answer.stdout).items():
                told.setdefault(name, []).append((error(found, truth), unbiased if "pure" in name else processed))
        print(f"epsilon {epsilon:g}, {DEVICES:,} devices, {len(SIZES)} fields, {REPEATS} tables")
        for name, pairs in told.items():
            theirs, own = np.array(pairs).T
            more = theirs - own
            spread = more.std(ddof=1) / np.sqrt(len(more))
            print(f"  {name:28} {theirs.mean():7.2f}  ours {own.mean():6.2f}  more {more.mean():+6.2f} +- {spread:.2f}")


if __name__ == "__main__":
    main(sys.argv[1])
