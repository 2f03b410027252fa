"""How long it takes to count an archive again, beside reading the same files and counting nothing.

    python benchmarks/recount.py [--reports 5000000] [--engine processes|dask]

The archive has 20 questions of 32 cells (OUE, epsilon 1) in 64 slots; 2 in 100 reports are there twice.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable

import numpy as np
import pyarrow

from ldp_aggregator.archive.locations import open_place
from ldp_aggregator.archive.recount import Engine, on_dask, on_processes, parts_of, recount
from ldp_aggregator.archive.writer import Archive
from ldp_aggregator.store import Submission
from ldp_protocols import Campaign
from ldp_protocols.wire import Block

COMMIT = 50_000
RETRIES = 0.02
SLOTS = 64
VALUES = 16
FEATURES = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reports", type=int, default=5_000_000, help="reports in the archive, retries included")
    parser.add_argument("--engine", choices=["processes", "dask"], default="processes")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    print(
        f"Python {platform.python_version()}, numpy {np.__version__}, pyarrow {pyarrow.__version__}, "
        f"{os.cpu_count()} processors, {platform.machine()}; engine {options.engine}"
    )
    with tempfile.TemporaryDirectory() as folder:
        campaign = _campaign()
        print(f"writing {options.reports:,} reports took {_write(folder, campaign, options.reports):.1f} s")
        read = _median(options.runs, lambda: _read(folder, campaign))
        engine = _engine(options.engine)
        counted = _median(options.runs, lambda: recount(folder, campaign.id, engine))
        found = recount(folder, campaign.id, engine)
    print(
        f"recount: {counted:.2f} s, median of {options.runs}; reading alone: {read:.2f} s, ratio {counted / read:.1f}"
    )
    print(f"{found.reports:,} count, {found.duplicates:,} repeat one; {options.reports / counted:,.0f} reports/s")


def _campaign() -> Campaign:
    values = [f"v{number}" for number in range(VALUES)]
    features = [
        {"name": f"f{number}", "kind": "categorical", "missing": False, "values": values} for number in range(FEATURES)
    ]
    label = {"name": "label", "classes": ["yes", "no"], "weight": 0}
    return Campaign.compile(
        {
            "version": 1,
            "title": "Recount",
            "label": label,
            "features": features,
            "privacy": {"epsilon": 1.0, "discrete": "oue"},
        }
    )


def _write(folder: str, campaign: Campaign, reports: int) -> float:
    rng = np.random.default_rng(1)
    archive = Archive(open_place(folder), SLOTS)
    width = campaign.questions[0].mechanism.width
    each = COMMIT // FEATURES
    again = int(each * RETRIES)
    before: dict[int, Block] = {}
    started = time.perf_counter()
    for _ in range(0, reports, COMMIT):
        blocks = []
        for question in range(FEATURES):
            ids, payloads = rng.bytes(16 * each), rng.bytes(width * each)
            if question in before:
                ids = before[question].ids[-16 * again :] + ids[16 * again :]
                payloads = before[question].payloads[-width * again :] + payloads[width * again :]
            before[question] = Block(question, ids, payloads)
            blocks.append(before[question])
        archive.publish(archive.write([Submission(campaign, tuple(blocks))]))
    return time.perf_counter() - started


def _read(folder: str, campaign: Campaign) -> None:
    place = open_place(folder)
    for names in parts_of(place, campaign.id):
        for name in names:
            place.read(name)


def _engine(name: str) -> Engine:
    return on_processes if name == "processes" else on_dask


def _median(runs: int, work: Callable[[], object]) -> float:
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


if __name__ == "__main__":
    main()
