"""Devices that answer a campaign, straight into its store; the same answers in every run."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from exact_coins import SeededCoins

from ldp_aggregator.store import Submission, open_store
from ldp_client.answering import perturb
from ldp_protocols import Campaign, decode_upload, encode_upload


def answer(data: Path, campaign_id: str, people: Iterable[tuple[dict[str, Any], str]], seed: int = 1) -> None:
    """Records and labels, one after another."""

    async def count() -> None:
        store = await open_store(data)
        campaign = Campaign.parse(await store.document(campaign_id))
        coins = SeededCoins(seed)
        uploads = [encode_upload(perturb(campaign, record, label, coins=coins), campaign) for record, label in people]
        await store.count([Submission(campaign, decode_upload(upload, campaign)) for upload in uploads])
        await store.close()

    asyncio.run(count())
