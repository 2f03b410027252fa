"""Does a report's cost grow with what is stored? Bulk uploads into an embedded store, measured as it fills.

    python benchmarks/growth.py [--reports 50000000] [--peer 5000000]

Durable reports per second in windows, beside those of a young store at the same time, and the processor time a report;
bytes written and kept, memory,
the time to open the store again and to count a first upload then, and what duplicates cost. In the same run, an SQLite
table whose key is the id: what a store without runs is made of. It fails where a report was lost or counted twice.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from ldp_aggregator.store import SqliteStore, Submission
from ldp_aggregator.store.sqlite.database import FILE_NAME
from ldp_protocols import Campaign
from ldp_protocols.wire import Block

COMMIT = 50_000
QUESTIONS = 20
VALUES = 16
DUPLICATES = COMMIT // QUESTIONS // 100
"""Reports to each question that come again, in an upload with duplicates."""
PERIOD = 5
"""Windows after which a rate is printed. In the last fifth that of a young store is measured after each window."""
IO = "/proc/self/io"
DOUBLED = 80
"""Uploads, half of them with duplicates."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reports", type=int, default=50_000_000)
    parser.add_argument("--window", type=int, default=1_000_000, help="reports in a window")
    parser.add_argument("--peer", type=int, default=4_000_000, help="ids in the table beside it; 0 for none")
    parser.add_argument("--folder", type=Path, help="where the store is made (default: a temporary folder)")
    parser.add_argument("--reopen", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.reports % (PERIOD * options.window) or options.window % COMMIT:
        parser.error(f"--reports has to be {PERIOD} windows, or a multiple, and a window whole uploads of {COMMIT:,}")
    if options.reopen:
        asyncio.run(_reopen(options.folder))
        return
    print(
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, numpy {np.__version__}, "
        f"{os.cpu_count()} processors, {platform.machine()}"
    )
    folder = options.folder or Path(tempfile.mkdtemp(prefix="growth-"))
    try:
        asyncio.run(_grow(folder, options.reports, options.window))
        subprocess.run([sys.executable, __file__, "--reopen", "--folder", str(folder)], check=True)
        if options.peer:
            _peer(folder, options.peer, options.window)
    finally:
        if options.folder is None:
            shutil.rmtree(folder)


async def _grow(folder: Path, reports: int, window: int) -> None:
    campaign = _campaign()
    store = SqliteStore(folder / FILE_NAME)
    await store.create_campaign(campaign)
    rng = np.random.default_rng(1)
    seconds = []
    costs = []
    young = []
    written = 0
    early: list[Submission] = []
    for start in range(0, reports, window):
        before, used = _written(), time.process_time()
        took, drawing = await _count(store, campaign, rng, window, early)
        seconds.append(took)
        end = start + window
        is_last = end > reports - _last(reports)
        if is_last and (len(seconds) % PERIOD == 0 or end == reports):
            began = time.perf_counter()
            await _rest(store)
            seconds[-1] += time.perf_counter() - began
        written += _written() - before
        costs.append((time.process_time() - used - drawing) / window * 1e6)
        if is_last:
            young.append(await _young(folder, window))
            rate, cost = young[-1]
            print(f"{'':>12}  a store of a million, now: {rate:>9,.0f} reports/s, {cost:.2f} us", flush=True)
        if start == 0 or len(seconds) % PERIOD == 0:
            cost = np.mean(costs[-PERIOD:])
            said = f"{window / seconds[-1]:>9,.0f} reports/s, {cost:.2f} us of processor time a report"
            print(f"{end:>12,} stored: {said}{'' if start == 0 else f' in the last {PERIOD}'}", flush=True)
    last = seconds[-(_last(reports) // window) :]
    print(f"{reports / sum(seconds):,.0f} reports/s in all, {window / seconds[0]:,.0f} in the first window")
    full = np.mean(costs[-len(last) :])
    print(
        f"processor time a report: {costs[0]:.2f} us in the first window, {full:.2f} in the last {_last(reports):,}: "
        f"{full / np.median([one for _, one in young]):.2f} times that of the stores of a million then"
    )
    rate = window * len(last) / sum(last)
    rates = np.median([one for one, _ in young])
    print(f"{rate:,.0f} in the last {_last(reports):,}: {rate / rates:.2f} of the stores of a million then")
    if written:
        print(f"bytes written per report: {written / reports:,.0f}")
    await _rest(store)
    print(f"bytes kept per report, at rest: {_size(folder) / reports:.1f}")
    print(f"memory: {_resident():.0f} MiB now, {_peak():.0f} at most")
    plain, doubled = await _with_duplicates(store, campaign, rng, early)
    print(f"with 1 % duplicates {doubled:,.0f} reports/s, {doubled / plain:.2f} of {plain:,.0f} without")
    wanted = reports + DOUBLED * COMMIT - DOUBLED // 2 * DUPLICATES * QUESTIONS
    counted, findings = int((await store.tally(campaign.id)).n.sum()), await store.check()
    await store.close()
    if counted != wanted or findings:
        sys.exit(f"{counted:,} reports are counted, not {wanted:,}; what does not agree: {findings}")


def _last(reports: int) -> int:
    """How many reports make the rate of a full store: a fifth, in which every size of run is merged."""
    return reports // 5


async def _count(
    store: SqliteStore, campaign: Campaign, rng: np.random.Generator, reports: int, early: list[Submission]
) -> tuple[float, float]:
    """Seconds that it takes to count new reports, and processor seconds that drawing them takes; ``early`` gets the
    first of each upload.
    """
    seconds = drawing = 0.0
    for _ in range(reports // COMMIT):
        began = time.thread_time()
        submission = _submission(campaign, rng)
        early.append(_first(submission))
        drawing += time.thread_time() - began
        began = time.perf_counter()
        [outcome] = await store.count([submission])
        seconds += time.perf_counter() - began
        assert outcome.counted == COMMIT
    return seconds, drawing


async def _young(folder: Path, window: int) -> tuple[float, float]:
    """Reports per second, and microseconds of processor time each, of a fresh store from its first window to its
    second: a shared machine is not equally fast at all times, and what is compared must be measured side by side.
    """
    with tempfile.TemporaryDirectory(dir=folder) as fresh:
        store = SqliteStore(Path(fresh) / FILE_NAME)
        campaign = _campaign()
        await store.create_campaign(campaign)
        rng = np.random.default_rng()
        await _count(store, campaign, rng, window, [])
        used = time.process_time()
        seconds, drawing = await _count(store, campaign, rng, window, [])
        cost = (time.process_time() - used - drawing) / window * 1e6
        await store.close()
    return window / seconds, cost


async def _rest(store: SqliteStore) -> None:
    """Until no run is being merged."""
    for _ in range(3):
        await store.beat()
        while store.tidying:
            await asyncio.sleep(0.1)
            await store.beat()


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


async def _with_duplicates(
    store: SqliteStore, campaign: Campaign, rng: np.random.Generator, early: list[Submission]
) -> tuple[float, float]:
    """Reports per second in uploads of new ones, and in uploads (taken in turn) of which one report in a hundred was in
    an upload before, whichever.
    """
    seconds = [0.0, 0.0]
    for number in range(DOUBLED):
        submission = _submission(campaign, rng)
        again = number % 2
        if again:
            submission = _beginning_as(early[rng.integers(len(early))], submission)
        began = time.perf_counter()
        [outcome] = await store.count([submission])
        seconds[again] += time.perf_counter() - began
        assert outcome.duplicates == again * DUPLICATES * QUESTIONS
    return DOUBLED // 2 * COMMIT / seconds[0], DOUBLED // 2 * COMMIT / seconds[1]


def _first(submission: Submission) -> Submission:
    """The first reports to each question, as many as will come again."""
    return Submission(
        submission.campaign,
        tuple(
            Block(block.question, block.ids[: 16 * DUPLICATES], block.payloads[:DUPLICATES])
            for block in submission.blocks
        ),
    )


def _beginning_as(before: Submission, submission: Submission) -> Submission:
    blocks = [
        Block(new.question, old.ids + new.ids[len(old.ids) :], old.payloads + new.payloads[len(old.payloads) :])
        for new, old in zip(submission.blocks, before.blocks, strict=True)
    ]
    return Submission(submission.campaign, tuple(blocks))


async def _reopen(folder: Path) -> None:
    campaign = _campaign()
    began = time.perf_counter()
    store = SqliteStore(folder / FILE_NAME)
    await store.count([_submission(campaign, np.random.default_rng(2))])
    print(f"opened again, first upload counted: {time.perf_counter() - began:.1f} s, {_resident():.0f} MiB")
    await store.close()


def _peer(folder: Path, ids: int, window: int) -> None:
    db = sqlite3.connect(folder / "peer.sqlite3", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA cache_size = -65536")
    db.execute("CREATE TABLE ids (id BLOB PRIMARY KEY, digest BLOB NOT NULL) WITHOUT ROWID")
    rng = np.random.default_rng(3)
    rates = []
    for _ in range(0, ids, window):
        seconds = 0.0
        for _ in range(window // COMMIT):
            drawn = rng.bytes(24 * COMMIT)
            rows = sorted(drawn[at : at + 24] for at in range(0, 24 * COMMIT, 24))
            began = time.perf_counter()
            db.execute("BEGIN")
            db.executemany("INSERT INTO ids VALUES (?, ?)", [(row[:16], row[16:]) for row in rows])
            db.execute("COMMIT")
            seconds += time.perf_counter() - began
        rates.append(window / seconds)
    db.close()
    print(f"a table of ids: {rates[0]:,.0f} ids/s at first, {rates[-1]:,.0f} at {ids:,}: {rates[-1] / rates[0]:.2f}")


def _campaign() -> Campaign:
    values = [f"v{number}" for number in range(VALUES)]
    features = [
        {"name": f"f{number}", "kind": "categorical", "missing": False, "values": values} for number in range(QUESTIONS)
    ]
    return Campaign.compile(
        {
            "version": 1,
            "title": "Growth",
            "label": {"name": "label", "classes": ["yes", "no"], "weight": 0},
            "features": features,
            "privacy": {"epsilon": 1.0, "discrete": "de"},
        }
    )


def _submission(campaign: Campaign, rng: np.random.Generator) -> Submission:
    each = COMMIT // QUESTIONS
    return Submission(
        campaign,
        tuple(
            Block(question, rng.bytes(16 * each), rng.integers(0, 2 * VALUES, each, dtype=np.uint8).tobytes())
            for question in range(QUESTIONS)
        ),
    )


def _written() -> int:
    """Bytes this process had written to disk, where Linux tells; 0 elsewhere."""
    try:
        lines = Path(IO).read_text().splitlines()
    except OSError:
        return 0
    return int(dict(line.split(": ") for line in lines)["write_bytes"])


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
