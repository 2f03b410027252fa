"""How many sealed uploads a relay and a gateway take, and how many that show answer tokens, beside uploads in the clear
on the same ways in the same run.

    python benchmarks/oblivious.py [--json] [--uploads 4000] [--rounds 5] [--only kept]

Seven ways, each with a fresh store: devices to the aggregator in the clear, without and with a token; the same two on
kept connections, which is the aggregator's rate and not that of connections; sealed, by somebody else's relay, of which
there is only what it sends on (one request an upload, on kept connections); devices to a relay of ours in the clear,
and sealed. A way's time ends when all its reports are counted, and counted once. What counts is the aggregator's
processor time for each upload, on the first processor, with the load on the second: the ways take turns, and a ratio is
the median of the rounds'. Told apart is processor time for sealing on the device, for opening in the gateway, and for
verifying a token.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import cryptography
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.hashes import SHA384
from uploading import Server, cpu_seconds, on_loop, pin

from ldp_aggregator.server.access import check_answer_token
from ldp_aggregator.server.gateway import GatewayKeys
from ldp_aggregator.service.rights import make_token
from ldp_aggregator.service.signing import make_gateway_key, read_gateway_seeds
from ldp_aggregator.store import Store, open_store
from ldp_aggregator.store.contract import utc_now
from ldp_client.network.sealed import Sealed
from ldp_protocols import Campaign, Report, decode_upload, encode_upload
from ldp_protocols.document.issuer import EXPONENT, MODULUS_BYTES, Issuer
from ldp_protocols.framing import ID_BYTES
from ldp_protocols.oblivious import BESIDE_BODY, REQUEST_TYPE, BinaryRequest, encode_request
from ldp_protocols.tokens import SALT_BYTES, credentials, token_input
from ldp_protocols.wire import MEDIA_TYPE

AT_ONCE = 32
KEPT_AT_ONCE = 448
"""As many as a busy server has: a sealed answer leaves a tenth of a second after its request."""
BATCH = 100
FIRST = 2 * BATCH
"""Uploads before those that are measured."""
SAMPLE = 500


_HASH = SHA384()


class Signer:
    """An issuer that signs whatever it is shown."""

    def __init__(self) -> None:
        self.key = generate_private_key(EXPONENT, 8 * MODULUS_BYTES)
        modulus = self.key.public_key().public_numbers().n
        self.issuer = Issuer("issuer.example", modulus).to_json()

    def shown(self, campaign: Campaign, identifier: bytes) -> str:
        """The header of the report with this id."""
        signed = token_input(campaign, [identifier])
        return credentials(signed + self.key.sign(signed, PSS(MGF1(_HASH), SALT_BYTES), _HASH))


def make_campaign(key: Path, issuer: dict[str, Any] | None = None) -> Campaign:
    return Campaign.compile(
        {
            "issuer": issuer,
            "version": 1,
            "title": "sealed",
            "label": {"name": "label", "classes": ["yes", "no"], "weight": 0},
            "features": [{"name": "f", "kind": "categorical", "missing": False, "values": [str(v) for v in range(16)]}],
            "privacy": {"epsilon": 1.0, "discrete": "oue"},
            "gateway": None if issuer else make_gateway_key(key).to_json(),
        }
    )


def uploads(campaign: Campaign, count: int) -> list[bytes]:
    width = campaign.questions[0].mechanism.width
    return [encode_upload([Report(0, os.urandom(ID_BYTES), bytes(width))], campaign) for _ in range(count)]


def sealed(campaign: Campaign, bodies: Sequence[bytes]) -> list[bytes]:
    path, headers = f"/v1/campaigns/{campaign.id}/reports", (("content-type", MEDIA_TYPE),)
    assert campaign.gateway is not None
    asked = [BinaryRequest("POST", "https", "collect.example.org", path, headers, body) for body in bodies]
    return [Sealed(campaign.gateway, encode_request(one, beside=BESIDE_BODY)).body for one in asked]


async def post_all(
    address: str, path: str, media_type: str, bodies: Sequence[bytes], shown: Sequence[str], *, kept: bool
) -> None:
    """Send each on a connection of its own, or all on kept ones, so many at a time."""
    host, port = address.removeprefix("http://").split(":")
    left = iter(zip(bodies, shown, strict=True))

    async def send() -> None:
        reader = writer = None
        for body, told in left:
            if writer is None:
                reader, writer = await asyncio.open_connection(host, int(port))
            head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {media_type}\r\n"
            head += f"Authorization: {told}\r\n" if told else ""
            head += f"Connection: {'keep-alive' if kept else 'close'}\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            if answer[9:12] not in (b"200", b"202"):
                raise SystemExit(f"{path} answers {answer[9:12].decode()}")
            await reader.readexactly(int(re.search(rb"(?i)content-length: (\d+)", answer)[1]))
            if not kept:
                writer.close()
                writer = None
        if writer is not None:
            writer.close()

    await asyncio.gather(*(send() for _ in range(KEPT_AT_ONCE if kept else AT_ONCE)))


async def with_store(data: Path, work: Callable[[Store], Awaitable[Any]]) -> Any:
    store = await open_store(data, None)
    try:
        return await work(store)
    finally:
        await store.close()


def counted(data: Path, campaign: Campaign) -> int:
    async def count(store: Store) -> int:
        return int((await store.tally(campaign.id)).n.sum())

    return int(asyncio.run(with_store(data, count)))


def measure(way: str, count: int) -> dict[str, float]:
    """Seconds until all were answered, and until all were counted, as rates; and processor time of the aggregator."""
    with tempfile.TemporaryDirectory(prefix="ldp-oblivious-") as name:
        folder = Path(name)
        signer = Signer() if "token" in way else None
        campaign = make_campaign(folder / "gateway.key", signer and signer.issuer)
        bodies = uploads(campaign, FIRST + count)
        shown = [signer.shown(campaign, _id_of(body)) if signer else "" for body in bodies]
        kept = "kept" in way
        text, token = make_token("relay", "relay", utc_now())
        (folder / "token").write_text(text)
        (folder / "data").mkdir()

        async def prepare(store: Store) -> None:
            await store.create_campaign(campaign)
            await store.add_token(token)

        asyncio.run(with_store(folder / "data", prepare))
        server = Server(folder / "data", None, **({} if signer else {"GATEWAY_KEY": str(folder / "gateway.key")}))
        relay = None
        path, media_type = f"/v1/campaigns/{campaign.id}/reports", MEDIA_TYPE
        if way.startswith("sealed"):
            bodies, media_type = sealed(campaign, bodies), REQUEST_TYPE
            path = "/ohttp" if way.endswith("relay of ours") else "/v1/ohttp"
        address = server.url
        try:
            if way.endswith("relay of ours"):
                line = [sys.executable, "-m", "ldp_aggregator.relay", server.url, campaign.id, "--port", "0"]
                line += [
                    "--gather",
                    "0",
                    "--least-batch",
                    str(BATCH),
                    "--longest-wait",
                    "0.2",
                    "--storage",
                    str(folder / "relay.db"),
                ]
                line += ["--token-file", str(folder / "token")]
                relay = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
                address = "http://" + re.search(r"relaying on (\S+)", relay.stdout.readline())[1]
            on_loop(post_all(address, path, media_type, bodies[:FIRST], shown[:FIRST], kept=kept))
            _wait_for(FIRST, folder / "data", campaign)
            used, started = cpu_seconds(server.process.pid), time.perf_counter()
            on_loop(post_all(address, path, media_type, bodies[FIRST:], shown[FIRST:], kept=kept))
            answered = time.perf_counter() - started
            found = _wait_for(FIRST + count, folder / "data", campaign)
            done, used = time.perf_counter() - started, cpu_seconds(server.process.pid) - used
        finally:
            if relay is not None:
                relay.terminate()
                relay.wait()
            server.stop()
        if found != FIRST + count or counted(folder / "data", campaign) != found:
            raise SystemExit(f"{way}: {FIRST + count} uploads were answered, {found} are counted")
    return {
        "answered_per_second": round(count / answered),
        "counted_per_second": round(count / done),
        "server_cpu_us": round(used / count * 1e6, 1),
    }


def _wait_for(count: int, data: Path, campaign: Campaign) -> int:
    """Number of reports that are counted once so many are, or after two minutes."""
    until = time.perf_counter() + 120
    while (found := counted(data, campaign)) < count and time.perf_counter() < until:
        time.sleep(0.02)
    return found


def _id_of(upload: bytes) -> bytes:
    at = upload.index(b"\xc4\x10") + 2
    return upload[at : at + ID_BYTES]


def alone() -> dict[str, float]:
    """Microseconds of one processor for one upload, without any network."""
    with tempfile.TemporaryDirectory(prefix="ldp-oblivious-") as name:
        key = Path(name) / "gateway.key"
        campaign = make_campaign(key)
        keys, bodies = GatewayKeys(read_gateway_seeds(key)), uploads(campaign, SAMPLE)
        started = time.process_time()
        closed = sealed(campaign, bodies)
        between = time.process_time()
        opened = [keys.open(body) for body in closed]
        after = time.process_time()
        for one in opened:
            one.seal(bytes(512))
        end = time.process_time()
        signer = Signer()
        campaign = make_campaign(key, signer.issuer)
        answers = [(decode_upload(body, campaign), signer.shown(campaign, _id_of(body))) for body in bodies]
        before = time.process_time()
        for blocks, shown in answers:
            check_answer_token(campaign, blocks, shown)
        verified = time.process_time() - before
    spent = {"seal_us": between - started, "open_us": after - between, "seal_answer_us": end - after}
    spent["verify_token_us"] = verified
    return {name: round(seconds / SAMPLE * 1e6, 1) for name, seconds in spent.items()}


WAYS = (
    "clear, to the aggregator",
    "with a token, to the aggregator",
    "clear, kept connections",
    "with a token, kept connections",
    "sealed, somebody's relay, kept connections",
    "clear, a relay of ours",
    "sealed, a relay of ours",
)
BOUNDS = {
    "with a token, to the aggregator": "clear, to the aggregator",
    "with a token, kept connections": "clear, kept connections",
    "sealed, somebody's relay, kept connections": "clear, kept connections",
    "sealed, a relay of ours": "clear, a relay of ours",
}
"""The way beside which another is put."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uploads", type=int, default=4000, help=f"of each way and round; times {BATCH}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="only the ways that have this in their name")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    pin(1)
    count = max(BATCH, options.uploads // BATCH * BATCH)
    ways = [way for way in WAYS if options.only in way]
    rounds = [{way: measure(way, count) for way in ways} for _ in range(options.rounds)]
    figures: dict[str, Any] = {
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()},
        "cryptography": cryptography.__version__,
        "uploads": count,
        "rounds": options.rounds,
        **alone(),
    }
    for way in ways:
        figures[way] = {name: statistics.median(one[way][name] for one in rounds) for name in rounds[0][way]}
        if BOUNDS.get(way) in ways:
            ratios = sorted(one[way]["server_cpu_us"] / one[BOUNDS[way]]["server_cpu_us"] for one in rounds)
            least, bound = (min(one[name]["server_cpu_us"] for one in rounds) for name in (way, BOUNDS[way]))
            figures[way] |= {"ratio": round(statistics.median(ratios), 2), "ratios": [round(one, 2) for one in ratios]}
            figures[way]["ratio_of_the_leasts"] = round(least / bound, 2)
    if options.json:
        print(json.dumps(figures, indent=1))
        return
    print(f"{figures['machine']}, cryptography {cryptography.__version__}, {count} uploads, {options.rounds} rounds")
    print(
        f"one upload: {figures['seal_us']} µs to seal, {figures['open_us']} to open, {figures['seal_answer_us']} more; "
        f"a token: {figures['verify_token_us']} µs to verify"
    )
    for way in ways:
        told = figures[way]
        line = f"{way:42} {told['answered_per_second']:>6.0f}/s answered {told['counted_per_second']:>6.0f}/s counted"
        line += f" {told['server_cpu_us']:>6.1f} µs"
        if "ratio" in told:
            line += f", {told['ratio']} times that in the clear ({told['ratios'][0]} to {told['ratios'][-1]}; "
            line += f"{told['ratio_of_the_leasts']} of the leasts)"
        print(line)


if __name__ == "__main__":
    main()
