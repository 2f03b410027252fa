"""Publish a campaign and collect reports until Ctrl-C, inside a program of your own.

    python examples/run_aggregator.py examples/campaign.toml data/ 8080

The same from a shell: `ldp-aggregator campaign create DRAFT --data DIR` and `ldp-aggregator serve --data DIR`.
"""

import asyncio
import sys
from pathlib import Path

from ldp_aggregator.server.process import run_server
from ldp_aggregator.server.sockets.listener import Addresses
from ldp_aggregator.service.drafts import compile_draft
from ldp_aggregator.service.settings import read_settings
from ldp_aggregator.store import open_store
from ldp_protocols import Campaign


async def publish(campaign: Campaign, data: Path) -> None:
    """Keep the campaign in the data folder. Publishing it again changes nothing."""
    store = await open_store(data)
    try:
        await store.create_campaign(campaign)
    finally:
        await store.close()


def main() -> None:
    draft, data, port = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    campaign = compile_draft(draft.read_bytes(), toml=draft.suffix == ".toml")
    asyncio.run(publish(campaign, data))

    def ready(addresses: Addresses) -> None:
        print(f"devices contribute to {addresses.public} campaign {campaign.id}", flush=True)

    # The other listeners stay on this machine; put a TLS proxy in front of the public one.
    own = {"listen_admin": "0", "listen_operations": "0"}
    settings = read_settings(flags={"data": data, "listen": f"127.0.0.1:{port}", **own})
    run_server(settings, ready)


if __name__ == "__main__":
    main()
