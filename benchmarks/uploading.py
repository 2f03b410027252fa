"""A load of uploads in a process of its own, on a processor of its own, and the servers that it is put on."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import re
import ssl
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ldp_protocols import Campaign, Report, encode_upload
from ldp_protocols.framing import ID_BYTES
from ldp_protocols.wire import MEDIA_TYPE, Block, encode_blocks

READY = re.compile(r"ready: public (\S+) admin (\S+) operations (\S+)")
WITHOUT_UVLOOP = "import sys; sys.modules['uvloop'] = None; from ldp_aggregator.__main__ import main; sys.exit(main())"
ALL_COUNTED = b'{"rejected": []}'


@dataclass(frozen=True)
class Plan:
    """What is sent: ``reports`` an upload, ``replayed`` of the uploads are sent a second time, by ``connections`` at a
    time, each of which carries one upload where they are not ``kept``. ``pace`` is uploads a second, None for all that
    the server takes.
    """

    document: bytes
    reports: int = 1
    replayed: float = 0.0
    connections: int = 64
    kept: bool = True
    seconds: float = 5.0
    token: str = ""
    pace: float | None = None


@dataclass
class Results:
    statuses: dict[str, int] = field(default_factory=dict)
    milliseconds: list[float] = field(default_factory=list)
    rejected: int = 0
    distinct: int = 0
    """Reports that were acknowledged and are no replays."""
    broken: int = 0
    seconds: float = 0.0

    def figures(self, reports: int) -> dict[str, Any]:
        ordered = sorted(self.milliseconds) or [float("nan")]
        answered = len(self.milliseconds)
        return {
            "requests_per_second": round(answered / self.seconds, 1),
            "reports_per_second": round(answered * reports / self.seconds),
            "p50_ms": round(statistics.median(ordered), 2),
            "p99_ms": round(ordered[int(0.99 * (len(ordered) - 1))], 2),
            "statuses": self.statuses,
            "uploads_with_rejections": self.rejected,
            "broken_connections": self.broken,
        }


def uploads(plan: Plan) -> Iterator[tuple[bytes, bool]]:
    """Endless uploads, and whether each is new; questions and replays are drawn, every id is fresh."""
    campaign = Campaign.parse(plan.document)
    dice = random.Random(1)
    sizes = [question.mechanism.width for question in campaign.questions]
    # Payloads that every mechanism allows: no bit set, the first index, no noise.
    frames = [
        encode_upload([Report(number, bytes(ID_BYTES), bytes(size))], campaign) for number, size in enumerate(sizes)
    ]
    places = [frame.index(b"\xc4\x10") + 2 for frame in frames]
    while True:
        number = dice.randrange(len(sizes))
        if plan.reports == 1:
            at = places[number]
            body = frames[number][:at] + os.urandom(ID_BYTES) + frames[number][at + ID_BYTES :]
        else:
            ids, payloads = os.urandom(ID_BYTES * plan.reports), bytes(sizes[number] * plan.reports)
            body = encode_blocks([Block(number, ids, payloads)], campaign)
        yield body, True
        if dice.random() < plan.replayed:
            yield body, False


class Client(asyncio.Protocol):
    """One connection that sends the next request when the last one is answered."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.buffer = b""
        self.answered = True
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.send()

    def send(self) -> None:
        load = self.load
        if time.perf_counter() >= load.until:
            self.transport.close()
            return
        if load.plan.pace is not None and (early := load.next_due() - time.perf_counter()) > 0.0005:
            asyncio.get_running_loop().call_later(early, self.send_now)
        else:
            self.send_now()

    def send_now(self) -> None:
        if self.transport.is_closing():
            return
        self.body, self.new = next(self.load.bodies)
        self.started = time.perf_counter()
        self.answered = False
        self.transport.write(self.load.head(len(self.body)) + self.body)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, rest = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(re.search(rb"(?i)content-length: (\d+)", head)[1])
        if len(rest) < length:
            return
        self.buffer = b""
        self.answered = True
        results = self.load.results
        status = head[9:12].decode()
        results.statuses[status] = results.statuses.get(status, 0) + 1
        if status == "200":
            results.milliseconds.append((time.perf_counter() - self.started) * 1000)
            results.rejected += rest != ALL_COUNTED
            results.distinct += self.load.plan.reports * self.new
        if self.load.plan.kept and b"connection: close" not in head.lower():
            self.send()
        else:
            self.transport.close()

    def connection_lost(self, _error: Exception | None) -> None:
        self.load.results.broken += not self.answered
        if not self.done.done():
            self.done.set_result(None)


class Load:
    """A plan being carried out on ``url``."""

    def __init__(self, plan: Plan, url: str, path: str) -> None:
        self.plan, self.results, self.bodies = plan, Results(), uploads(plan)
        self.address = urlsplit(url)
        self.tls = None
        if self.address.scheme == "https":
            self.tls = ssl.create_default_context()
            self.tls.check_hostname = False
            self.tls.verify_mode = ssl.CERT_NONE
        lines = [f"POST {path} HTTP/1.1", f"Host: {self.address.hostname}", f"Content-Type: {MEDIA_TYPE}"]
        lines += [f"Authorization: Bearer {plan.token}"] if plan.token else []
        lines += [] if plan.kept else ["Connection: close"]
        self.lines = "\r\n".join(lines)
        self.heads: dict[int, bytes] = {}
        self.sent = 0

    def head(self, length: int) -> bytes:
        if length not in self.heads:
            self.heads[length] = f"{self.lines}\r\nContent-Length: {length}\r\n\r\n".encode()
        return self.heads[length]

    def next_due(self) -> float:
        self.sent += 1
        return self.begun + self.sent / self.plan.pace

    async def run(self) -> Results:
        self.begun = time.perf_counter()
        self.until = self.begun + self.plan.seconds
        await asyncio.gather(*(self.keep_one_open() for _ in range(self.plan.connections)))
        self.results.seconds = time.perf_counter() - self.begun
        return self.results

    async def keep_one_open(self) -> None:
        loop = asyncio.get_running_loop()
        while time.perf_counter() < self.until:
            try:
                _, client = await loop.create_connection(
                    lambda: Client(self), self.address.hostname, self.address.port, ssl=self.tls
                )
            except OSError:
                self.results.broken += 1
                await asyncio.sleep(0.01)
                continue
            await client.done


def on_loop(main: Any) -> Any:
    """On uvloop where it is installed: the load must not be what is measured."""
    try:
        import uvloop
    except ModuleNotFoundError:
        return asyncio.run(main)
    return uvloop.run(main)


def pin(number: int) -> None:
    """To one processor, where the system can and there is more than one."""
    if hasattr(os, "sched_setaffinity") and (os.cpu_count() or 1) > 1:
        os.sched_setaffinity(0, {number})


def _load(pipe: Any, plan: Plan, url: str, path: str) -> None:
    pin(1)
    pipe.send(on_loop(Load(plan, url, path).run()))


def put_on(plan: Plan, url: str, path: str) -> Results:
    """Carry out a plan from another process, on the second processor."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_load, args=(sender, plan, url, path))
    process.start()
    results: Results = receiver.recv()
    process.join()
    return results


def cpu_seconds(process: int) -> float:
    """Processor time of a process and its threads so far, in nanoseconds exact; Linux only: see
    ``clock_getcpuclockid``, whose clocks have these numbers there.
    """
    return time.clock_gettime(~process << 3 | 2)


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate on the curve P-256, and its key."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    subprocess.run([*command.split(), "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    return certificate, key


class Server:
    """``ldp-aggregator serve`` in a process of its own, on the first processor."""

    def __init__(self, data: Path, database: str | None, *, on_asyncio: bool = False, **environment: str) -> None:
        values = {
            "LISTEN": "127.0.0.1:0",
            "LISTEN_ADMIN": "0",
            "LISTEN_OPERATIONS": "0",
            "DATA": str(data),
            "LOG_LEVEL": "error",
        }
        values |= ({"DATABASE": database} if database else {}) | environment
        self.process = subprocess.Popen(
            [sys.executable, *(["-c", WITHOUT_UVLOOP] if on_asyncio else ["-m", "ldp_aggregator"]), "serve"],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {f"LDP_AGGREGATOR_{name}": value for name, value in values.items()},
            preexec_fn=lambda: pin(0),
        )
        self.url, self.admin, self.operations = READY.search(self.process.stdout.readline()).groups()

    def rss_mebibytes(self) -> float | None:
        """Resident memory; None where the operating system has no /proc."""
        status = Path(f"/proc/{self.process.pid}/status")
        if not status.exists():
            return None
        return round(int(re.search(r"VmRSS:\s+(\d+)", status.read_text())[1]) / 1024, 1)

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait()
