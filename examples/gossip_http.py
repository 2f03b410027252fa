"""Nodes that learn one model together without any server: push-sum (Kempe, Dobra, Gehrke 2003) over HTTP.

    python examples/gossip_http.py [NODES] [ROUNDS]

Every node is an HTTP server on loopback. It adds the noise to its statistics first, once; then, round by round, it
keeps half of what it has and pushes the other half to a node drawn at random. All of them end with nearly the same sum,
and so with nearly the model that a server would have derived from all shares. On real machines, put TLS and tokens in
between: whoever can push can lie.
"""

import asyncio
import random
import sys

import numpy as np
import pandas as pd
from aiohttp import ClientError, ClientSession, web

from ldp_aggregator import NaiveBayes
from ldp_aggregator.trainers import (
    FederatedState,
    PushSumNode,
    decode_share,
    model_of_totals,
    node_statistics,
)
from ldp_aggregator.trainers.federation import Push
from ldp_protocols import Campaign

TOLERANCE = 1e-3
"""Of a probability, or of a mean or spread as a share of its feature's range."""

CAMPAIGN = Campaign.compile(
    {
        "version": 1,
        "title": "Gossip",
        "label": {"name": "faulty", "classes": ["yes", "no"]},
        "features": [
            {"name": "temperature", "kind": "continuous", "low": 0, "high": 100},
            {"name": "model", "kind": "categorical", "values": ["A", "B", "C"]},
        ],
        "privacy": {"epsilon": 1},
    }
)


class Node:
    """One node: its half of the talk over HTTP. ``peers`` are the addresses of all nodes."""

    def __init__(self, share: bytes) -> None:
        self.state = PushSumNode(decode_share(share, CAMPAIGN))
        self.peers: list[str] = []
        self.url = ""
        self.taken: set[tuple[str, int]] = set()

    async def start(self) -> web.AppRunner:
        app = web.Application(client_max_size=1 << 20)
        app.router.add_post("/push", self.receive)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        return runner

    async def receive(self, request: web.Request) -> web.Response:
        told = await request.json()
        message = (told["sender"], told["round"])
        if message not in self.taken:  # A push that is sent again, because its answer was lost, counts once.
            self.taken.add(message)
            self.state.receive(Push(np.array(told["vector"]), told["weight"]))
        return web.Response()

    async def talk(self, rounds: int, session: ClientSession) -> None:
        for number in range(rounds):
            half = self.state.push()
            body = {"sender": self.url, "round": number, "vector": half.vector.tolist(), "weight": half.weight}
            await deliver(session, f"{random.choice(self.peers)}/push", body)

    def model(self) -> NaiveBayes:
        """The model of the sum as this node knows it."""
        totals = [round(number) for number in (self.state.mean * len(self.peers)).tolist()]
        return model_of_totals(CAMPAIGN, totals, nodes=len(self.peers))


async def deliver(session: ClientSession, url: str, body: dict) -> None:
    """A push that was given away must arrive, or its part of the sum is lost: try until it does."""
    while True:
        try:
            async with session.post(url, json=body) as answer:
                if answer.status == 200:
                    return
        except ClientError:
            pass
        await asyncio.sleep(0.1)


def noisy_share(seed: int) -> bytes:
    """What a node computes from its own table; here the table is made up."""
    rng = np.random.default_rng(seed)
    faulty = rng.random(500) < 0.3
    frame = pd.DataFrame(
        {
            "temperature": np.where(faulty, 70, 45) + rng.normal(0, 8, 500),
            "model": rng.choice(["A", "B", "C"], 500, p=[0.5, 0.3, 0.2]),
        }
    )
    return node_statistics(CAMPAIGN, frame, pd.Series(np.where(faulty, "yes", "no")))


def parameters(model: NaiveBayes) -> np.ndarray:
    """All numbers of a model, in the units of TOLERANCE."""
    temperature, kind = model.model_.likelihoods
    span = temperature.feature.high - temperature.feature.low
    spread = np.sqrt(temperature.variance) / span
    return np.concatenate([model.model_.prior, np.array(temperature.mean) / span, spread, np.ravel(kind.table)])


async def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    shares = [noisy_share(seed) for seed in range(count)]
    nodes = [Node(share) for share in shares]
    runners = [await node.start() for node in nodes]
    for node in nodes:
        node.peers = [peer.url for peer in nodes]
    try:
        async with ClientSession() as session:
            await asyncio.gather(*(node.talk(rounds, session) for node in nodes))
    finally:
        for runner in runners:
            await runner.cleanup()
    merged = FederatedState(CAMPAIGN, {f"node {number}": share for number, share in enumerate(shares)}).model(groups=1)
    deviation = max(np.abs(parameters(node.model()) - parameters(merged)).max() for node in nodes)
    print(f"{count} nodes, {rounds} rounds: no node is further than {deviation:.1e} from the merged model")
    if deviation > TOLERANCE:
        sys.exit(f"that is more than {TOLERANCE}: more rounds are needed")


if __name__ == "__main__":
    asyncio.run(main())
