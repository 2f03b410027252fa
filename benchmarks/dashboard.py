"""First bytes and processor time of a campaign's pages with 40 features and 3 classes, over HTTP on loopback; beside it
the list's.

    python benchmarks/dashboard.py

Prints machine and versions, then medians of 20 (and the slowest first byte) with the number of reports changing before
each: a page shows the last figures while newer ones are worked out, whose time is in the figures, as is the time of the
client that asks in the same process. The very first look at a campaign waits for its figures, and stands apart.
"""

from __future__ import annotations

import asyncio
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path

import aiohttp
import numpy

from ldp_aggregator.server.process import running
from ldp_aggregator.server.sockets.listener import Listeners
from ldp_aggregator.service.rights import make_token
from ldp_aggregator.service.settings import Settings
from ldp_aggregator.store import SqliteStore, Submission
from ldp_aggregator.store.contract import utc_now
from ldp_client import perturb
from ldp_protocols import Campaign, decode_upload, encode_upload

RUNS = 20
DEVICES = 2000


def feature(number: int) -> dict[str, object]:
    name = f"f{number}"
    if number % 2:
        return {"name": name, "kind": "categorical", "missing": False, "values": [f"v{value}" for value in range(6)]}
    return {
        "name": name,
        "kind": "continuous",
        "missing": False,
        "low": 0,
        "high": 100,
        **({"bins": 6} if number % 4 else {}),
    }


CAMPAIGN = Campaign.compile(
    {
        "version": 1,
        "title": "Forty features, three classes",
        "label": {"name": "y", "classes": ["a", "b", "c"]},
        "features": [feature(number) for number in range(40)],
        "privacy": {"epsilon": 2.0},
    }
)


async def count(store: SqliteStore, devices: range) -> None:
    reports = []
    for i in devices:
        record = {f"f{k}": f"v{i % 6}" if k % 2 else i % 100 for k in range(40)}
        reports += perturb(CAMPAIGN, record, "abc"[i % 3])
    await store.count([Submission(CAMPAIGN, decode_upload(encode_upload(reports, CAMPAIGN), CAMPAIGN))])


async def main() -> None:
    print(
        f"Python {platform.python_version()}, numpy {numpy.__version__}, {os.cpu_count()} cores, {platform.machine()}"
    )
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "store.sqlite3")
        text, token = make_token("benchmark", "admin", utc_now())
        await store.add_token(token)
        settings = Settings(data=Path(folder), listen="127.0.0.1:0", listen_admin="0", listen_operations="0")
        listeners = Listeners.bind(settings)
        admin = listeners.addresses(settings).admin
        await store.create_campaign(CAMPAIGN)
        await count(store, range(DEVICES))
        jar = aiohttp.CookieJar(unsafe=True)
        async with running(settings, listeners, store=store), aiohttp.ClientSession(cookie_jar=jar) as session:
            async with session.post(f"{admin}/login", data={"token": text}) as answer:
                answer.raise_for_status()
            pages = (f"/campaigns/{CAMPAIGN.id}{more}" for more in ("", "?lied=1", "?feature=1", "/health", "/privacy"))
            for path in (*pages, "/"):
                first, seconds = [], []
                for run in range(1 + RUNS):
                    await count(store, range(1 + run))
                    before, begun = time.process_time(), time.perf_counter()
                    async with session.get(admin + path) as answer:
                        first.append(1000 * (time.perf_counter() - begun))
                        body = await answer.read()
                        answer.raise_for_status()
                    seconds.append(1000 * (time.process_time() - before))
                print(
                    f"first byte {statistics.median(first[1:]):5.1f} ms, at most {max(first[1:]):5.1f}, "
                    f"at the first look {first[0]:5.1f}; "
                    f"processor {statistics.median(seconds):5.1f} ms; {len(body):7,} bytes  {path}"
                )
        await store.close()


if __name__ == "__main__":
    asyncio.run(main())
