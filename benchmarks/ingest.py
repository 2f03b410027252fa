"""How fast the aggregator takes reports in, against a bare aiohttp handler in the same run.

    python benchmarks/ingest.py [--json] [--seconds 5] [--overload-seconds 20] [--database postgresql://...]

Every report has an id of its own, and after every load the store is asked how many it has: a benchmark that lost one
fails. Loads come from another process than the server, over loopback, from ``--connections`` keep-alive connections.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ldp_aggregator import Tally
from ldp_aggregator.store import Store, open_store
from protocols import Campaign
from protocols.wire.reports import ID_BYTES
from protocols.wire.upload import MEDIA_TYPE, Block, encode_blocks

BULK_REPORTS = 50_000
DECODE_REPORTS = 200_000
READY = re.compile(r"ready: public (\S+)")


def make_campaign(mechanism: str, domain_size: int) -> Campaign:
    """One question of ``domain_size`` cells, two classes."""
    return Campaign.compile(
        {
            "version": 1,
            "title": f"{mechanism} {domain_size}",
            "label": {"name": "label", "classes": ["yes", "no"], "weight": 0},
            "features": [{"name": "value", "kind": "categorical", "values": [str(v) for v in range(domain_size // 2)]}],
            "privacy": {"epsilon": 1.0, "discrete": mechanism},
        }
    )


def random_payloads(campaign: Campaign, count: int) -> bytes:
    """Payloads that a device can have sent, of uniform bits or indices."""
    mechanism = campaign.questions[0].mechanism
    rng = np.random.default_rng(1)
    if mechanism.name == "de":
        return rng.integers(0, mechanism.domain_size, count).astype(f"<u{mechanism.width}").tobytes()
    rows = rng.integers(0, 256, (count, mechanism.width), dtype=np.uint8)
    if mechanism.domain_size % 8:
        rows[:, -1] &= (1 << mechanism.domain_size % 8) - 1
    return rows.tobytes()


def uploads(campaign: Campaign, reports: int) -> Iterator[bytes]:
    """Endless uploads of ``reports`` reports each, every id fresh."""
    width = campaign.questions[0].mechanism.width
    payloads = random_payloads(campaign, max(reports, 1000))
    while True:
        for start in range(0, len(payloads) - reports * width + 1, reports * width):
            yield encode_blocks([Block(0, os.urandom(ID_BYTES * reports), payloads[start : start + reports * width])])


class Load(asyncio.Protocol):
    """One keep-alive connection that sends the next request when the last one is answered."""

    def __init__(self, head: str, bodies: Iterator[bytes], until: float, results: dict[str, Any]) -> None:
        self.head, self.bodies, self.until, self.results = head, bodies, until, results
        self.buffer = b""
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.send()

    def send(self) -> None:
        if time.perf_counter() >= self.until:
            self.transport.close()
            return
        body = next(self.bodies)
        self.started = time.perf_counter()
        self.transport.write(f"{self.head}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, rest = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(re.search(rb"(?i)content-length: (\d+)", head)[1])
        if len(rest) < length:
            return
        self.buffer = b""
        status = head[9:12].decode()
        self.results["statuses"][status] = self.results["statuses"].get(status, 0) + 1
        if status == "200":
            self.results["milliseconds"].append((time.perf_counter() - self.started) * 1000)
            if b'"rejected":[]' not in rest.replace(b" ", b""):
                self.results["rejected"] += 1
        self.send()

    def connection_lost(self, _error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(None)


async def load(url: str, path: str, bodies: Iterator[bytes], connections: int, seconds: float) -> dict[str, Any]:
    """Run ``connections`` connections for ``seconds``; latencies and statuses of what was answered."""
    host, port = re.fullmatch(r"http://(.+):(\d+)", url).groups()
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {MEDIA_TYPE}\r\n"
    results: dict[str, Any] = {"statuses": {}, "milliseconds": [], "rejected": 0}
    loop = asyncio.get_running_loop()
    started = time.perf_counter()
    protocols = [
        (await loop.create_connection(lambda: Load(head, bodies, started + seconds, results), host, int(port)))[1]
        for _ in range(connections)
    ]
    await asyncio.gather(*(protocol.done for protocol in protocols))
    results["seconds"] = time.perf_counter() - started
    return results


def run_load(*arguments: Any) -> dict[str, Any]:
    """On uvloop where it is installed: the load must not be what is measured."""
    try:
        import uvloop
    except ModuleNotFoundError:
        return asyncio.run(load(*arguments))
    return uvloop.run(load(*arguments))


def figures(results: dict[str, Any], reports: int) -> dict[str, Any]:
    latencies = results["milliseconds"]
    return {
        "requests_per_second": round(len(latencies) / results["seconds"], 1),
        "reports_per_second": round(len(latencies) * reports / results["seconds"]),
        "p50_ms": round(statistics.median(latencies), 2),
        "p99_ms": round(float(np.percentile(latencies, 99)), 2),
        "statuses": results["statuses"],
        "uploads_with_rejections": results["rejected"],
    }


def serve_bare(pipe: Any) -> None:
    """The bound: an aiohttp handler that reads the body and answers, and does nothing else."""
    from aiohttp import web

    async def handle(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=b'{"rejected": []}', content_type="application/json")

    async def main() -> None:
        app = web.Application()
        app.router.add_post("/{path:.*}", handle)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        pipe.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    try:
        import uvloop
    except ModuleNotFoundError:
        asyncio.run(main())
    else:
        uvloop.run(main())


def cpu_seconds(process: int) -> float:
    """User and system time of a process so far; Linux only."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Server:
    """``ldp-aggregator serve`` in a process of its own."""

    def __init__(self, data: Path, database: str | None, **environment: str) -> None:
        values = {"HOST": "127.0.0.1", "PORT": "0", "ADMIN_PORT": "0", "DATA": str(data), "LOG_LEVEL": "error"}
        values |= ({"DATABASE": database} if database else {}) | environment
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ldp_aggregator", "serve"],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {f"LDP_AGGREGATOR_{name}": value for name, value in values.items()},
        )
        self.url = READY.search(self.process.stdout.readline())[1]

    def rss_mebibytes(self) -> float | None:
        """Resident memory; None where the operating system has no /proc."""
        status = Path(f"/proc/{self.process.pid}/status")
        if not status.exists():
            return None
        return round(int(re.search(r"VmRSS:\s+(\d+)", status.read_text())[1]) / 1024, 1)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


async def with_store(data: Path, database: str | None, work: Any) -> Any:
    store: Store = await open_store(data, database)
    try:
        return await work(store)
    finally:
        await store.close()


def check_nothing_lost(data: Path, database: str | None, campaign: Campaign, acknowledged: int) -> None:
    """Every acknowledged report is in the tally, and the store agrees with itself."""

    async def work(store: Store) -> tuple[int, list[Any]]:
        return int((await store.tally(campaign.id)).n.sum()), await store.audit()

    counted, findings = asyncio.run(with_store(data, database, work))
    # A load ends by closing connections only between requests, so both numbers are the same, not just close.
    if counted != acknowledged or findings:
        raise SystemExit(f"{acknowledged} reports were acknowledged, {counted} are counted; {findings}")


def measure_server(options: argparse.Namespace, reports: int, connections: int, seconds: float, **environment: str):
    """A fresh store, a fresh server, one load; its figures."""
    campaign = make_campaign("oue", 128)
    with tempfile.TemporaryDirectory(prefix="ldp-ingest-") as folder:
        data = Path(folder)
        asyncio.run(with_store(data, options.database, lambda store: store.create_campaign(campaign)))
        before = 0
        if options.database:
            tally = asyncio.run(with_store(data, options.database, lambda store: store.tally(campaign.id)))
            before = int(tally.n.sum())
        server = Server(data, options.database, **environment)
        try:
            start, cpu = server.rss_mebibytes(), cpu_seconds(server.process.pid)
            path = f"/v1/campaigns/{campaign.id}/reports"
            results = run_load(server.url, path, uploads(campaign, reports), connections, seconds)
            end, cpu = server.rss_mebibytes(), cpu_seconds(server.process.pid) - cpu
        finally:
            server.stop()
        acknowledged = len(results["milliseconds"]) * reports
        check_nothing_lost(data, options.database, campaign, before + acknowledged)
    answers = max(1, sum(results["statuses"].values()))
    return figures(results, reports) | {
        "server_cpu_us_per_request": round(cpu / answers * 1e6, 1),
        "rss_start_mib": start,
        "rss_end_mib": end,
    }


def measure_bare(options: argparse.Namespace) -> dict[str, Any]:
    campaign = make_campaign("oue", 128)
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=serve_bare, args=(sender,), daemon=True)
    process.start()
    url = f"http://127.0.0.1:{receiver.recv()}"
    cpu = cpu_seconds(process.pid)
    results = run_load(url, "/v1/x", uploads(campaign, 1), options.connections, options.seconds)
    cpu = cpu_seconds(process.pid) - cpu
    process.terminate()
    process.join()
    answers = max(1, sum(results["statuses"].values()))
    return figures(results, 1) | {"server_cpu_us_per_request": round(cpu / answers * 1e6, 1)}


def measure_decoding(mechanism: str) -> int:
    """Reports a second through decode, validation and tally, in memory, on one thread."""
    campaign = make_campaign(mechanism, 128)
    upload = encode_blocks([Block(0, os.urandom(ID_BYTES * DECODE_REPORTS), random_payloads(campaign, DECODE_REPORTS))])
    times = []
    for _ in range(7):
        started = time.perf_counter()
        tally = Tally.of_uploads(campaign, [upload])
        times.append(time.perf_counter() - started)
        if int(tally.n.sum()) != DECODE_REPORTS:
            raise SystemExit("the tally lost reports")
    return round(DECODE_REPORTS / statistics.median(times))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--seconds", type=float, default=5.0, help="length of each load (default: %(default)s)")
    parser.add_argument("--overload-seconds", type=float, default=20.0, help="length of the overload")
    parser.add_argument("--connections", type=int, default=64, help="connections of the load (default: %(default)s)")
    parser.add_argument("--database", help="measure PostgreSQL at this address instead of the embedded store")
    options = parser.parse_args()

    bare = measure_bare(options)
    one = measure_server(options, 1, options.connections, options.seconds)
    bulk = measure_server(options, BULK_REPORTS, 4, options.seconds)
    # More than the queue holds, so that refusing is what is measured: memory must stay where it was.
    overload = measure_server(
        options, 1000, 256, options.overload_seconds, LIMITS__QUEUE_BYTES=str(1 << 20), LIMITS__CONNECTIONS="300"
    )
    results = {
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()},
        "store": "postgresql" if options.database else "sqlite",
        "bare_aiohttp": bare,
        "one_report": one | {"ratio_to_bare": round(one["requests_per_second"] / bare["requests_per_second"], 3)},
        "bulk": bulk | {"reports_per_upload": BULK_REPORTS},
        "overload": overload,
        "decode_and_tally_reports_per_second": {name: measure_decoding(name) for name in ("de", "oue")},
    }
    if options.json:
        print(json.dumps(results, indent=2))
        return
    for name, value in results.items():
        print(f"{name}: {json.dumps(value)}")


if __name__ == "__main__":
    main()
