"""What the median over groups of nodes costs, and what it is worth when a node lies.

    python benchmarks/groups.py [--repeats 40]

Every repeat makes new tables of hospitals: two even classes, a number and three categories that tell them apart. Prints
for each federation the mean accuracy on 4,000 other rows, with its standard error: of the median over the document's
groups, and of all shares added up. A node that lies sends 16 times its rows, all of one class.
"""

import argparse
import math
import statistics
import warnings

import numpy as np
import pandas as pd

from ldp_aggregator.trainers import FederatedState, decode_share, encode_share, node_statistics
from ldp_protocols import Campaign

FEDERATIONS = {
    "3 nodes of 800 rows": ([800] * 3, 0),
    "3 nodes of 800 rows, one lies": ([800] * 3, 1),
    "9 nodes of 800 rows, one lies": ([800] * 9, 1),
    "9 nodes of 100 rows": ([100] * 9, 0),
    "20 nodes of 100 rows": ([100] * 20, 0),
    "nodes of 3,000, 40 and 40 rows": ([3_000, 40, 40], 0),
}
HELD_OUT = 4_000
DRAFT = {
    "version": 1,
    "title": "Readmission",
    "privacy": {"epsilon": 1},
    "label": {"name": "readmitted", "classes": ["yes", "no"]},
    "features": [
        {"name": "age", "kind": "continuous", "low": 0, "high": 110},
        {"name": "ward", "kind": "categorical", "values": ["surgery", "medicine", "other"]},
        {"name": "alone", "kind": "categorical", "values": ["yes", "no"]},
        {"name": "before", "kind": "categorical", "values": ["never", "once", "often"]},
    ],
}


def table(rng, rows):
    """Rows of one hospital, and their labels."""
    ill = rng.random(rows) < 0.5
    names = {one["name"]: np.array(one["values"]) for one in DRAFT["features"] if "values" in one}
    shares = {"ward": ([0.2, 0.6, 0.2], [0.5, 0.3, 0.2]), "alone": ([0.6, 0.4], [0.3, 0.7])}
    shares["before"] = ([0.2, 0.3, 0.5], [0.6, 0.3, 0.1])
    frame = {"age": np.where(ill, rng.normal(70, 12, rows), rng.normal(52, 15, rows))}
    for name, (one, other) in shares.items():
        values = names[name]
        drawn = np.where(ill, rng.choice(len(values), rows, p=one), rng.choice(len(values), rows, p=other))
        frame[name] = values[drawn]
    return pd.DataFrame(frame), pd.Series(np.where(ill, "yes", "no"))


def lie(campaign, share):
    """A share of the same form: its class counts are those of 16 times the rows, all of the first class."""
    values = decode_share(share, campaign).copy()
    rows = int(values[:2].sum())
    values[0], values[1] = 16 * rows, 0
    values[2:] = values[2:] * 16
    return encode_share(campaign, values)


def accuracies(campaign, sizes, liars, seed):
    """Accuracy of the median, and of the shares added up."""
    rng = np.random.default_rng(seed)
    shares = {
        f"node-{place}": node_statistics(campaign, *table(rng, rows), random_state=1_000 * seed + place)
        for place, rows in enumerate(sizes)
    }
    for place in range(liars):
        shares[f"node-{place}"] = lie(campaign, shares[f"node-{place}"])
    state, held_out = FederatedState(campaign, shares), table(rng, HELD_OUT)
    return tuple(state.model(salt=b"salt", **groups).score(*held_out) for groups in ({}, {"groups": 1}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=40)
    repeats = parser.parse_args().repeats
    campaign = Campaign.compile(DRAFT)
    warnings.simplefilter("ignore")  # Seeds, which make this repeat.
    for name, (sizes, liars) in FEDERATIONS.items():
        found = [accuracies(campaign, sizes, liars, seed) for seed in range(repeats)]
        median, added = (
            f"{statistics.mean(one):.3f} ± {statistics.stdev(one) / math.sqrt(repeats):.3f}"
            for one in zip(*found, strict=True)
        )
        print(f"{name:34}{'median':>8} {median}{'added up':>11} {added}", flush=True)


if __name__ == "__main__":
    main()
