"""A service on asyncio: contributes when it has something to say, delivers in the background, never blocks its loop.

python examples/asyncio_service.py URL CAMPAIGN_ID
"""

import asyncio
import sys

from ldp_client import Device
from ldp_client.aio import AsyncDriver


async def observe() -> tuple[dict[str, object], str]:
    """Stands for the work of the service, from which a record and its label come."""
    await asyncio.sleep(0.1)
    return {"age": "old", "words": 31_000}, "yes"


async def main() -> None:
    url, campaign_id = sys.argv[1:3]
    device = Device("service.db", max_total_epsilon=4)
    campaign = device.campaign(url, campaign_id, max_epsilon=2)
    async with AsyncDriver(device) as driver:
        # The operator of this service has agreed; elsewhere this is the user's decision.
        await driver.call(campaign.grant)
        record, label = await observe()
        await driver.call(campaign.contribute, record, label)
        # A service that goes on running leaves the rest to the background, which waits for a random moment first.
        # This one is about to end, so it asks for the delivery now.
        delivered = await driver.run_once(timeout=20)
        print(f"delivered: {delivered}, sent: {campaign.status().sent}")


if __name__ == "__main__":
    asyncio.run(main())
