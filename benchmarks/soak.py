"""A server under a steady load for as long as one likes, with every kind of bad client beside it.

    python benchmarks/soak.py [--minutes 15] [--pace 5000] [--asyncio] [--database postgresql://...] [--json]

Beside the uploads: clients that do not read, sockets that say nothing (with TLS: never shake hands), heads and bodies
that stop half way, clients that vanish, uploads sent ahead, garbage, replays, readers of the public page, and more
forms that stop half way than the admin listener has places. It fails where a report was lost or counted twice, where a
status was neither 200 nor that of overload, where the health listener did not answer or an operator with a token did
not get in, and where the memory grew by more than a tenth of what it was after the time it takes to settle.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import random
import socket
import ssl
import sys
import tempfile
import threading
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ingest import make_campaign, with_store
from uploading import Plan, Server, cpu_seconds, make_certificate, on_loop, pin, put_on, uploads

from ldp_aggregator.service.rights import make_token
from ldp_aggregator.store.contract import utc_now
from ldp_protocols.wire import MEDIA_TYPE

OVERLOAD = {"200", "429", "503"}
GROWTH = 1.1
SAMPLE_SECONDS = 1.0
MOST_CONNECTIONS = 300


@dataclass
class Watch:
    """What the server used, and whether its health listener answered."""

    server: Server
    settle_seconds: float
    token: str
    mebibytes: list[tuple[float, float]] = field(default_factory=list)
    unanswered: int = 0
    shut_out: int = 0
    stopping: bool = False

    def run(self) -> None:
        begun = time.monotonic()
        while not self.stopping:
            time.sleep(SAMPLE_SECONDS)
            size = self.server.rss_mebibytes()
            if size is not None:
                self.mebibytes.append((time.monotonic() - begun, size))
            try:
                with urllib.request.urlopen(f"{self.server.operations}/healthz", timeout=10):
                    pass
            except OSError:
                self.unanswered += 1
            asked = urllib.request.Request(
                f"{self.server.admin}/admin/v1/campaigns", headers={"Authorization": f"Bearer {self.token}"}
            )
            try:
                with urllib.request.urlopen(asked, timeout=10):
                    pass
            except OSError:
                self.shut_out += 1

    def growth(self) -> tuple[float, float] | None:
        """Memory when it had settled, and the most after that; None where it was too short to settle."""
        settled = next((size for at, size in self.mebibytes if at >= self.settle_seconds), None)
        if settled is None:
            return None
        return settled, max(size for at, size in self.mebibytes if at >= self.settle_seconds)

    def by_minute(self) -> list[float]:
        """The most of every minute."""
        most: dict[int, float] = {}
        for at, size in self.mebibytes:
            most[int(at // 60)] = max(size, most.get(int(at // 60), 0.0))
        return list(most.values())


class Nuisances:
    """Bad clients, ``each`` of every kind at any time, until ``until``."""

    def __init__(self, url: str, admin: str, document: bytes, path: str, until: float, each: int) -> None:
        self.address, self.path, self.until, self.each = urlsplit(url), path, until, each
        self.admin = urlsplit(admin)
        self.bodies = uploads(Plan(document))
        self.sent_ahead = 0
        """Uploads that may have been counted without anybody having read so."""
        self.dice = random.Random(7)

    async def run(self) -> int:
        kinds = [self.deaf, self.silent, self.half_a_head, self.half_a_body, self.ahead, self.garbage, self.page]
        kinds += [self.form] * (1 + MOST_CONNECTIONS // self.each)
        await asyncio.gather(*(self.again(kind) for kind in kinds for _ in range(self.each)))
        return self.sent_ahead

    async def again(self, kind: Any) -> None:
        await asyncio.sleep(self.dice.random())
        while time.time() < self.until:
            with contextlib.suppress(OSError, asyncio.TimeoutError):
                await asyncio.wait_for(kind(), max(1.0, min(30.0, self.until - time.time())))
            await asyncio.sleep(self.dice.random() * 0.2)

    async def dial(self, *, speaks_tls: bool = True) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        tls = None
        if self.address.scheme == "https" and speaks_tls:
            tls = ssl.create_default_context()
            tls.check_hostname = False
            tls.verify_mode = ssl.CERT_NONE
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        client.setblocking(False)
        await asyncio.get_running_loop().sock_connect(client, (self.address.hostname, self.address.port))
        name = self.address.hostname if tls else None
        return await asyncio.open_connection(sock=client, ssl=tls, server_hostname=name)

    def upload(self) -> bytes:
        body, _ = next(self.bodies)
        head = (
            f"POST {self.path} HTTP/1.1\r\nHost: x\r\nContent-Type: {MEDIA_TYPE}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    async def deaf(self) -> None:
        reader, writer = await self.dial()
        reader._transport.pause_reading()
        document = self.path.removesuffix("/reports")
        writer.write(f"GET {document} HTTP/1.1\r\nHost: x\r\n\r\n".encode() * 200)
        await asyncio.sleep(5 + 10 * self.dice.random())
        writer.transport.abort()

    async def silent(self) -> None:
        _, writer = await self.dial(speaks_tls=False)
        await asyncio.sleep(3 + 9 * self.dice.random())
        writer.transport.abort()

    async def half_a_head(self) -> None:
        _, writer = await self.dial()
        writer.write(self.upload()[:60])
        await asyncio.sleep(2 + 5 * self.dice.random())
        writer.transport.abort()

    async def half_a_body(self) -> None:
        _, writer = await self.dial()
        writer.write(self.upload()[:-3])
        await asyncio.sleep(2 + 5 * self.dice.random())
        writer.transport.abort()

    async def ahead(self) -> None:
        _, writer = await self.dial()
        many = 20
        self.sent_ahead += many
        writer.write(b"".join(self.upload() for _ in range(many)))
        await writer.drain()
        await asyncio.sleep(self.dice.random() * 0.05)
        writer.transport.abort()

    async def page(self) -> None:
        reader, writer = await self.dial()
        page = self.path.replace("/v1/campaigns/", "/c/").removesuffix("/reports")
        writer.write(f"GET {page} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        await reader.read()
        writer.close()

    async def form(self) -> None:
        reader, writer = await asyncio.open_connection(self.admin.hostname, self.admin.port)
        head = "POST /login HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        writer.write(f"{head}Content-Length: 100\r\n\r\ntoken=".encode())
        try:
            await reader.read()
        finally:
            writer.transport.abort()

    async def garbage(self) -> None:
        reader, writer = await self.dial()
        writer.write(self.dice.randbytes(200))
        await reader.read()
        writer.close()


def be_a_nuisance(pipe: Any, *arguments: Any) -> None:
    pin(1)
    pipe.send(asyncio.run(Nuisances(*arguments).run()))


def soak(options: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    campaign = make_campaign("oue", 128, 10)
    path = f"/v1/campaigns/{campaign.id}/reports"
    seconds = options.minutes * 60
    with tempfile.TemporaryDirectory(prefix="ldp-soak-") as folder:
        data = Path(folder)
        token, stored = make_token("operator", "admin", utc_now())

        async def prepare(store: Any) -> None:
            await store.create_campaign(campaign)
            await store.add_token(stored)

        on_loop(with_store(data, options.database, prepare))
        environment = {"CONNECTIONS": str(MOST_CONNECTIONS)}
        if options.tls:
            certificate, key = make_certificate(data)
            environment |= {"TLS_CERTIFICATE": str(certificate), "TLS_KEY": str(key)}
        server = Server(data, options.database, on_asyncio=options.asyncio, **environment)
        watch = Watch(server, options.settle, token)
        watcher = threading.Thread(target=watch.run)
        watcher.start()
        context = multiprocessing.get_context("spawn")
        receiver, sender = context.Pipe(duplex=False)
        arguments = (server.url, server.admin, campaign.document, path, time.time() + seconds, options.each)
        nuisance = context.Process(target=be_a_nuisance, args=(sender, *arguments))
        nuisance.start()
        plan = Plan(
            campaign.document, replayed=0.01, connections=options.connections, seconds=seconds, pace=options.pace
        )
        cpu = cpu_seconds(server.process.pid)
        results = put_on(plan, server.url, path)
        cpu = cpu_seconds(server.process.pid) - cpu
        sent_ahead = receiver.recv()
        nuisance.join()
        watch.stopping = True
        watcher.join()
        stopped = time.monotonic()
        code = server.stop()
        stopped = time.monotonic() - stopped

        async def look(store: Any) -> tuple[int, list[Any]]:
            return int((await store.tally(campaign.id)).n.sum()), await store.check()

        counted, findings = on_loop(with_store(data, options.database, look))
    growth = watch.growth()
    found = results.figures(1) | {
        "minutes": options.minutes,
        "server_cpu_us_per_request": round(cpu / max(1, sum(results.statuses.values())) * 1e6, 1),
        "acknowledged": results.distinct,
        "sent_ahead_unheard": sent_ahead,
        "counted": counted,
        "settled_mib": growth and growth[0],
        "most_mib": growth and growth[1],
        "most_mib_by_minute": watch.by_minute(),
        "stop_seconds": round(stopped, 2),
        "operator_shut_out": f"{watch.shut_out} of {len(watch.mebibytes)}",
    }
    wrong = {
        "reports were lost": counted < results.distinct,
        "reports were counted twice": counted > results.distinct + results.broken + sent_ahead,
        "the store does not agree with itself": bool(findings),
        "an answer was neither 200 nor overload": not set(results.statuses) <= OVERLOAD,
        "sound reports were rejected": results.rejected > 0,
        "nothing was counted": results.distinct == 0,
        "the health listener did not answer": watch.unanswered > 0,
        "an operator was shut out": watch.shut_out > 0,
        "memory grew": growth is not None and growth[1] > GROWTH * growth[0],
        "the server did not end cleanly": code != 0,
    }
    return found, [name for name, holds in wrong.items() if holds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--pace", type=float, default=5000.0, help="uploads a second (default: %(default)s)")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--each", type=int, default=10, help="bad clients of every kind")
    parser.add_argument("--settle", type=float, default=120.0, help="seconds until memory is looked at")
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--asyncio", action="store_true", help="serve on asyncio's own loop, not on uvloop")
    parser.add_argument("--database")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    found, wrong = soak(options)
    print(
        json.dumps(found, indent=2) if options.json else "\n".join(f"{name}: {value}" for name, value in found.items())
    )
    if wrong:
        sys.exit("; ".join(wrong))


if __name__ == "__main__":
    main()
