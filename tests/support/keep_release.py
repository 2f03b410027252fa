"""Keeps what a release writes, so that every later version has to read it: run once for each release.

python tests/support/keep_release.py tests/releases/0.1.0

A document, an upload, a model, a device's storage, a store with two reports and a model, and the public names.
"""

import asyncio
import importlib
import json
import sys
from pathlib import Path

from ldp_aggregator import Tally, train
from ldp_aggregator.store import Submission, open_store
from ldp_client import Device
from ldp_client.testing import FakeServer
from ldp_protocols import Campaign, decode_upload

PUBLIC = (
    "ldp_protocols",
    "ldp_client",
    "ldp_client.testing",
    "ldp_aggregator.relay",
    "ldp_aggregator",
    "ldp_simulations",
)
PUBLIC += ("ldp_aggregator.trainers",)
DRAFT = {
    "version": 1,
    "title": "Will a customer miss a payment?",
    "label": {"name": "missed_payment", "classes": ["yes", "no"]},
    "features": [
        {"name": "age", "kind": "categorical", "values": ["young", "medium", "old"], "ordered": True},
        {"name": "income", "kind": "continuous", "low": 0, "high": 200000},
    ],
    "privacy": {"epsilon": 2.0, "answers": "all"},
}
RECORD = {"age": "old", "income": 50000}


def public_names() -> list[str]:
    """All names that a program may import, with their module."""
    return sorted(f"{name}.{one}" for name in PUBLIC for one in importlib.import_module(name).__all__)


def keep(folder: Path) -> None:
    """Write it all into ``folder``, which must not be there."""
    folder.mkdir(parents=True)
    with FakeServer() as server:
        campaign = server.publish(DRAFT)
        with Device(folder / "device.db", max_total_epsilon=2.0) as device:
            joined = device.campaign(server.url, campaign.id, max_epsilon=2.0)
            joined.grant()
            joined.contribute(RECORD, "yes")
            assert device.run_once(30)
        (upload,) = server.uploads
        (folder / "address.txt").write_text(server.url)
    (folder / "campaign.json").write_bytes(campaign.document)
    (folder / "upload.bin").write_bytes(upload)
    model = train(campaign, Tally.of_uploads(campaign, [upload])).to_json()
    (folder / "model.json").write_text(model)
    asyncio.run(_keep_store(folder / "store", campaign, upload, model))
    (folder / "names.json").write_text(json.dumps(public_names(), indent=1))


async def _keep_store(folder: Path, campaign: Campaign, upload: bytes, model: str) -> None:
    store = await open_store(folder)
    try:
        await store.create_campaign(campaign)
        await store.count([Submission(campaign, decode_upload(upload, campaign))])
        await store.publish_model(campaign.id, model)
    finally:
        await store.close()


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
