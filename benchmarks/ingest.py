"""How fast the aggregator takes reports in, against a bare aiohttp handler in the same run.

    python benchmarks/ingest.py [--json] [--seconds 5] [--rounds 3] [--overload-seconds 20] [--database postgresql://...]

The server has the first processor, the load the second. What counts is processor time for each request: requests a
second depend on what the load gets done. Every report has an id of its own but for those that are replays, and after
every load the store is asked how many it has: a benchmark that lost one, or counted one twice, fails. With
``--database`` every load has an empty database of its own on that server, dropped afterwards: what fills slows down.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import platform
import ssl
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from databases import fresh_database
from uploading import Plan, Server, cpu_seconds, make_certificate, on_loop, pin, put_on

from ldp_aggregator import Tally
from ldp_aggregator.service.rights import make_token
from ldp_aggregator.store import Store, open_store
from ldp_aggregator.store.contract import utc_now
from ldp_protocols import Campaign
from ldp_protocols.framing import ID_BYTES
from ldp_protocols.wire import Block, encode_blocks

BULK_REPORTS = 50_000
DECODE_REPORTS = 200_000


def make_campaign(mechanism: str, domain_size: int, questions: int = 1) -> Campaign:
    """``questions`` of ``domain_size`` cells each, two classes."""
    values = [str(v) for v in range(domain_size // 2)]
    return Campaign.compile(
        {
            "version": 1,
            "title": f"{mechanism} {domain_size}",
            "label": {"name": "label", "classes": ["yes", "no"], "weight": 0},
            "features": [
                {"name": f"f{n}", "kind": "categorical", "missing": False, "values": values} for n in range(questions)
            ],
            "privacy": {"epsilon": 1.0, "discrete": mechanism},
        }
    )


def serve_bare(pipe: Any, certificate: tuple[Path, Path] | None) -> None:
    """The bound: an aiohttp handler that reads the body and answers, and does nothing else."""
    from aiohttp import web

    pin(0)

    async def handle(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=b'{"rejected": []}', content_type="application/json")

    async def main() -> None:
        app = web.Application()
        app.router.add_post("/{path:.*}", handle)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        tls = None
        if certificate is not None:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(*certificate)
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        pipe.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    on_loop(main())


def measure_bare(plan: Plan, certificate: tuple[Path, Path] | None) -> dict[str, Any]:
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=serve_bare, args=(sender, certificate), daemon=True)
    process.start()
    url = f"{'https' if certificate else 'http'}://127.0.0.1:{receiver.recv()}"
    cpu = cpu_seconds(process.pid)
    results = put_on(plan, url, "/v1/x")
    cpu = cpu_seconds(process.pid) - cpu
    process.terminate()
    process.join()
    answers = max(1, sum(results.statuses.values()))
    return results.figures(plan.reports) | {"server_cpu_us_per_request": round(cpu / answers * 1e6, 1)}


async def with_store(data: Path, database: str | None, work: Any) -> Any:
    store: Store = await open_store(data, database)
    try:
        return await work(store)
    finally:
        await store.close()


def measure_server(
    database: str | None, plan: Plan, certificate: tuple[Path, Path] | None = None, **environment: str
) -> dict[str, Any]:
    """A fresh store, on the server of ``database`` where there is one, a fresh server, one load; its figures."""
    campaign = Campaign.parse(plan.document)
    text, token = make_token(f"relay {time.time_ns()}", "relay", utc_now())
    if certificate is not None:
        environment |= {"TLS_CERTIFICATE": str(certificate[0]), "TLS_KEY": str(certificate[1])}
    if plan.reports > 1:
        plan = Plan(**{**vars(plan), "token": text})
    with tempfile.TemporaryDirectory(prefix="ldp-ingest-") as folder, fresh_database(database) as address:
        data = Path(folder)

        async def prepare(store: Store) -> None:
            await store.create_campaign(campaign)
            await store.add_token(token)

        async def look(store: Store) -> tuple[int, list[Any]]:
            return int((await store.tally(campaign.id)).n.sum()), await store.check()

        asyncio.run(with_store(data, address, prepare))
        server = Server(data, address, **environment)
        try:
            start, cpu = server.rss_mebibytes(), cpu_seconds(server.process.pid)
            results = put_on(plan, server.url, f"/v1/campaigns/{campaign.id}/reports")
            end, cpu = server.rss_mebibytes(), cpu_seconds(server.process.pid) - cpu
        finally:
            server.stop()
        counted, findings = asyncio.run(with_store(data, address, look))
    # A load ends by closing connections only between requests, so both numbers are the same, not just close.
    if counted != results.distinct or findings:
        raise SystemExit(f"{results.distinct} reports were acknowledged, {counted} are counted; {findings}")
    answers = max(1, sum(results.statuses.values()))
    return results.figures(plan.reports) | {
        "server_cpu_us_per_request": round(cpu / answers * 1e6, 1),
        "rss_start_mib": start,
        "rss_end_mib": end,
    }


def beside_bare(options: argparse.Namespace, plan: Plan, certificate: tuple[Path, Path] | None) -> dict[str, Any]:
    """Bare and real in turns, and the medians of their ratios."""
    pairs = [
        (measure_bare(plan, certificate), measure_server(options.database, plan, certificate))
        for _ in range(options.rounds)
    ]

    def ratio(name: str) -> float:
        return round(statistics.median(real[name] / bare[name] for bare, real in pairs), 3)

    return {
        "bare_aiohttp": pairs[-1][0],
        "aggregator": pairs[-1][1],
        "cpu_ratio_to_bare": ratio("server_cpu_us_per_request"),
        "rate_ratio_to_bare": ratio("requests_per_second"),
    }


def measure_decoding(mechanism: str) -> int:
    """Reports a second through decode, validation and tally, in memory, on one thread."""
    campaign = make_campaign(mechanism, 128)
    payloads = bytes(DECODE_REPORTS * campaign.questions[0].mechanism.width)
    upload = encode_blocks([Block(0, os.urandom(ID_BYTES * DECODE_REPORTS), payloads)], campaign)
    times = []
    for _ in range(7):
        started = time.perf_counter()
        tally = Tally.of_uploads(campaign, [upload])
        times.append(time.perf_counter() - started)
        if int(tally.n.sum()) != DECODE_REPORTS:
            raise SystemExit("the tally lost reports")
    return round(DECODE_REPORTS / statistics.median(times))


def measure(options: argparse.Namespace) -> dict[str, Any]:
    one, many = make_campaign("oue", 128), make_campaign("oue", 128, 50)
    plain = Plan(one.document, connections=options.connections, seconds=options.seconds)
    found: dict[str, Any] = {
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()},
        "store": "postgresql" if options.database else "sqlite",
        "numpy": np.__version__,
    }
    with tempfile.TemporaryDirectory(prefix="ldp-certificate-") as folder:
        certificate = make_certificate(Path(folder))
        plans = {
            "one question": (plain, None),
            "50 questions": (Plan(**{**vars(plain), "document": many.document}), None),
            "one question, 1 % replays": (Plan(**{**vars(plain), "replayed": 0.01}), None),
            "50 questions, 1 % replays": (
                Plan(**{**vars(plain), "document": many.document, "replayed": 0.01}),
                None,
            ),
            "one question, a connection each": (Plan(**{**vars(plain), "kept": False}), None),
            "one question, TLS": (plain, certificate),
            "one question, TLS, a connection each": (Plan(**{**vars(plain), "kept": False}), certificate),
        }
        for name, (plan, secured) in plans.items():
            if not options.only or options.only in name:
                found[name] = beside_bare(options, plan, secured)
                print(f"{name}: {json.dumps(found[name])}", file=sys.stderr, flush=True)
    if options.only:
        return found
    for name, replayed in (("bulk", 0.0), ("bulk, 1 % replays", 0.01)):
        bulk = Plan(**{**vars(plain), "connections": 4, "reports": BULK_REPORTS, "replayed": replayed})
        found[name] = measure_server(options.database, bulk) | {"reports_per_upload": BULK_REPORTS}
    # More than the queue holds, so that refusing is what is measured: memory must stay where it was.
    crowd = Plan(**{**vars(plain), "connections": 256, "reports": 20_000, "seconds": options.overload_seconds})
    found["overload"] = measure_server(options.database, crowd, CONNECTIONS="300")
    found["decode_and_tally_reports_per_second"] = {name: measure_decoding(name) for name in ("de", "oue")}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--seconds", type=float, default=5.0, help="length of each load (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is put beside bare aiohttp")
    parser.add_argument("--overload-seconds", type=float, default=20.0, help="length of the overload")
    parser.add_argument("--connections", type=int, default=64, help="connections of the load (default: %(default)s)")
    parser.add_argument(
        "--database",
        help="measure PostgreSQL here (its role may create databases), not the embedded store",
    )
    parser.add_argument("--only", default="", help="only the one-report loads that have this in their name")
    options = parser.parse_args()
    found = measure(options)
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        for name, value in found.items():
            print(f"{name}: {json.dumps(value)}")


if __name__ == "__main__":
    main()
