"""Three regions collect for one campaign, each on a server of its own; one is cut off for a while; the sum is exact.

    python examples/regions.py [DEVICES]

No region waits for another, and none sees what the others have before the operator merges their backups. A device
belongs to one region: what it sends again, because an answer was lost or nobody was there, counts once.
"""

import asyncio
import itertools
import random
import re
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from ldp_aggregator import Tally
from ldp_aggregator.store import open_store
from ldp_client import perturb
from ldp_protocols import Campaign, encode_upload
from ldp_protocols.wire import MEDIA_TYPE

AGGREGATOR = ["ldp-aggregator"]
DRAFT = Path(__file__).with_name("campaign.toml")
REGIONS = ("north", "south", "west")


class Region:
    """A server, its data folder, and the devices that have not been told that their report is kept."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.waiting: list[bytes] = []
        self.campaign = run("campaign", "create", DRAFT, "--data", data).strip()
        self.open()

    def open(self) -> None:
        ports = ["--listen", "127.0.0.1:0", "--listen-admin", "0", "--listen-operations", "0"]
        self.server = subprocess.Popen(
            [*AGGREGATOR, "serve", "--data", str(self.data), *ports], stdout=subprocess.PIPE, text=True
        )
        self.url = re.search(r"public (\S+)", self.server.stdout.readline())[1]

    def cut_off(self) -> None:
        self.server.kill()
        self.server.communicate()  # It has ended when its output has.

    def send(self) -> None:
        """What is not answered with 200 stays, and is sent again."""
        self.waiting = [body for body in self.waiting if not self._is_kept(body)]

    def _is_kept(self, body: bytes) -> bool:
        url = f"{self.url}/v1/campaigns/{self.campaign}/reports"
        request = urllib.request.Request(url, body, {"Content-Type": MEDIA_TYPE})
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False


def run(*command: object) -> str:
    return subprocess.run([*AGGREGATOR, *map(str, command)], check=True, stdout=subprocess.PIPE, text=True).stdout


def merged(folder: Path, regions: list[Region], name: str) -> Path:
    """The backups of some regions, taken while they serve, as one store."""
    backups = [folder / f"{name} of {region.data.name}" for region in regions]
    for region, backup in zip(regions, backups, strict=True):
        run("backup", backup, "--data", region.data)
    total = backups[0]
    for number, backup in enumerate(backups[1:]):
        together = folder / f"{name} {number}"
        print(run("merge", total, backup, "--output", together), end="", flush=True)
        total = together
    return total


def tally_of(data: Path, campaign: str) -> Tally:
    async def read() -> Tally:
        store = await open_store(data, read_only=True)
        try:
            return await store.tally(campaign)
        finally:
            await store.close()

    return asyncio.run(read())


def main() -> None:
    devices = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    folder = Path(tempfile.mkdtemp(prefix="regions-"))
    regions = [Region(folder / name) for name in REGIONS]
    campaign_id = regions[0].campaign
    document = run("campaign", "show", campaign_id, "--document", "--data", regions[0].data).strip()
    campaign = Campaign.parse(document.encode(), campaign_id)
    draw = random.Random()
    ages = ("young", "medium", "old")
    everybody = []
    for region in itertools.islice(itertools.cycle(regions), devices):
        record = {"age": draw.choice(ages), "words": draw.randint(0, 200_000)}
        body = encode_upload(perturb(campaign, record, draw.choice(("yes", "no"))), campaign)
        region.waiting.append(body)
        everybody.append(body)
    west, others = regions[2], regions[:2]
    west.cut_off()
    for region in regions:
        region.send()
    print(f"west is cut off: {len(west.waiting)} devices wait; the others are summed up without it", flush=True)
    merged(folder, others, "early sum")
    west.open()
    lost = west.waiting[:5]
    west.send()
    west.waiting = lost  # Of five the answer was lost: they send the same bytes again.
    west.send()
    total = merged(folder, regions, "sum")
    expected = Tally.of_uploads(campaign, everybody)
    same = tally_of(total, campaign_id) == expected
    print(f"{devices} devices in three regions: the sum is {'exact' if same else 'WRONG'}")
    for region in regions:
        region.server.terminate()
        region.server.wait()
        region.server.stdout.close()
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
