"""Nodes that learn one model together without any server: push-sum (Kempe, Dobra, Gehrke 2003) over HTTP.

    python examples/gossip_http.py [NODES] [ROUNDS]
    python examples/gossip_http.py node PLACE FOLDER ROUNDS PORT PORT...

Every node is an HTTP server on loopback. It adds the noise to its statistics first, once; then, round by round, it
keeps half of what it has and pushes the other half to a node drawn at random. All of them end with nearly the same sum,
and so with nearly the model that a server would have derived from all shares.

The first command runs all nodes in one process. The second runs one, at PORT number PLACE (from 0): what it holds is in
a file of FOLDER before anything leaves, so that the same command goes on where a node was stopped, with the noise that
it had. A node that does not answer for some seconds is given up: its half is taken back, and asked for when it answers
again. The others then end with the model of what is left, and say how much is missing. Never delete the file of a node
that has talked: a new one would spend epsilon again, and its rows would count twice. On real machines, put TLS and
tokens in between: whoever can push can lie.
"""

import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from aiohttp import ClientError, ClientSession, ClientTimeout, web

from ldp_aggregator import NaiveBayes
from ldp_aggregator.trainers import FederatedState, PushSumNode, decode_share, model_of_totals, node_statistics
from ldp_aggregator.trainers.gossip import Push
from ldp_protocols import Campaign

TOLERANCE = 1e-3
"""Difference of a probability, or of a mean or spread as a share of its feature's range."""

PATIENCE_SECONDS = 5.0
"""A push that nobody answers is sent again for so long."""

PAUSE_SECONDS = 0.1
"""Between two attempts, and between a node's rounds where it is a process of its own."""

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
    """One node: its half of the talk over HTTP. ``peers`` are the addresses of all nodes, its own too."""

    def __init__(self, state: PushSumNode) -> None:
        self.state = state
        self.peers: list[str] = []
        self.url = ""
        self.talked, self.quiet = False, False
        """Tell whether it has had its rounds, and whether it will push no more."""
        self.woken = asyncio.Event()

    async def start(self, port: int = 0) -> web.AppRunner:
        app = web.Application(client_max_size=1 << 20)
        handlers = {"/push": self.receive, "/settle": self.settle, "/now": self.now, "/join": self.join}
        app.add_routes([web.post(path, handler) for path, handler in handlers.items()])
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        return runner

    async def receive(self, request: web.Request) -> web.Response:
        told = await request.json()
        self.state.receive(told["sender"], Push(**told["push"]))
        return web.json_response({})

    async def settle(self, request: web.Request) -> web.Response:
        told = await request.json()
        return web.json_response({"arrived": self.state.settle(told["sender"], told["numbers"])})

    async def now(self, request: web.Request) -> web.Response:
        return web.json_response({"talked": self.talked, "quiet": self.quiet, "weight": self.state.weight})

    async def join(self, request: web.Request) -> web.Response:
        """A peer has started, perhaps again: with nodes that push no more it would talk to itself."""
        if self.quiet:
            self.talked, self.quiet = False, False
            self.woken.set()
        return web.json_response({})

    async def talk(self, pushes: int, session: ClientSession, pause: float = 0.0) -> str:
        """Push until so many pushes in all, and while others have some to do; say what is missing in the end."""
        for push in list(self.state.open.values()):
            await self.deliver(session, push)  # Of the process before.
        while not await self.all_peers(session, "talked"):
            peer = random.choice(self.peers)
            if await self.settled_with(session, peer):
                await self.deliver(session, self.state.push(peer))
            self.talked = self.talked or self.state.pushes >= pushes
            await asyncio.sleep(pause)
        for peer in self.peers:
            await self.settled_with(session, peer)
        self.quiet = True
        for _ in range(round(PATIENCE_SECONDS / PAUSE_SECONDS)):
            if await self.all_peers(session, "quiet"):
                break
            await asyncio.sleep(PAUSE_SECONDS)
        told = {peer: await ask(session, f"{peer}/now", {}) for peer in self.peers}
        left = sum(one["weight"] for one in told.values() if one)
        silent = [peer for peer, one in told.items() if one is None]
        gone = f"; {len(self.peers) - left:.3f} is missing, and no answer comes from {', '.join(silent)}" * bool(silent)
        return f"the model of weight {left:.3f} of {len(self.peers)}{gone}"

    async def all_peers(self, session: ClientSession, what: str) -> bool:
        """Tell whether this node and all that answer have talked, or are quiet."""
        if not getattr(self, what):
            return False
        told = await asyncio.gather(*(ask(session, f"{peer}/now", {}) for peer in self.peers))
        return all(one is None or one[what] for one in told)

    async def settled_with(self, session: ClientSession, peer: str) -> bool:
        """Ask a peer what became of pushes to it that were taken back; False where it does not answer."""
        numbers = [push.number for push in self.state.doubted.values() if push.target == peer]
        if not numbers:
            return True
        told = await ask(session, f"{peer}/settle", {"sender": self.state.name, "numbers": numbers})
        if told is None:
            return False
        for number in numbers:
            self.state.settled(number, number in told["arrived"])
        return True

    async def deliver(self, session: ClientSession, push: Push) -> None:
        """Send a push until it is answered, or until patience ends."""
        end = time.monotonic() + PATIENCE_SECONDS
        while await ask(session, f"{push.target}/push", {"sender": self.state.name, "push": push.to_json()}) is None:
            if time.monotonic() > end:
                self.state.take_back(push.number)
                return
            await asyncio.sleep(PAUSE_SECONDS)
        self.state.arrived(push.number)

    def model(self) -> NaiveBayes:
        """The model of the sum as this node knows it."""
        totals = [round(number) for number in (self.state.mean * len(self.peers)).tolist()]
        return model_of_totals(CAMPAIGN, totals, nodes=len(self.peers))


async def ask(session: ClientSession, url: str, body: dict[str, Any]) -> dict[str, Any] | None:
    """The answer to one request, or None."""
    try:
        async with session.post(url, json=body, timeout=ClientTimeout(PATIENCE_SECONDS)) as answer:
            return await answer.json() if answer.status == 200 else None
    except (ClientError, TimeoutError):
        return None


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


async def run_one(place: int, folder: Path, rounds: int, ports: list[int]) -> None:
    """A node in a process of its own: it tells when it is done, and answers until it is stopped."""
    file = folder / f"node-{place}.db"
    node = Node(PushSumNode.opened(file, lambda: decode_share(noisy_share(place), CAMPAIGN)))
    node.peers = [f"http://127.0.0.1:{port}" for port in ports]
    await node.start(ports[place])
    pushes = rounds
    async with ClientSession() as session:
        await asyncio.gather(*(ask(session, f"{peer}/join", {}) for peer in node.peers))
        while True:
            print(await node.talk(pushes, session, PAUSE_SECONDS), node.model().to_json(), sep="\n", flush=True)
            await node.woken.wait()
            node.woken.clear()
            pushes = node.state.pushes + rounds


async def run_all(count: int, rounds: int, folder: Path) -> None:
    shares = [noisy_share(seed) for seed in range(count)]
    nodes = [
        Node(PushSumNode.opened(folder / f"{place}.db", lambda share=share: decode_share(share, CAMPAIGN)))
        for place, share in enumerate(shares)
    ]
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


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["node"]:
        place, folder, rounds, *ports = arguments[1:]
        asyncio.run(run_one(int(place), Path(folder), int(rounds), [int(port) for port in ports]))
        return
    count, rounds = (int(argument) for argument in (*arguments, *["8", "40"][len(arguments) :]))
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run_all(count, rounds, Path(folder)))


if __name__ == "__main__":
    main(sys.argv[1:])
