"""A round in Flower's simulation, each node in a process of Ray's: ``python flower_simulation.py FOLDER NODES FIRST``.

Writes what the server made of it to FOLDER/told.json. Nodes are numbered from FIRST. Of every ten numbers one drops out
at once, one raises, one sends nonsense, one is another under a second name, and one has another schema.
"""

import json
import sys
import time
from pathlib import Path

from flower_nodes import CAMPAIGN, node
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.simulation import run_simulation

from ldp_aggregator.flower.client import client_app
from ldp_aggregator.flower.messages import QUERY, RECORD
from ldp_aggregator.flower.server import collect
from ldp_aggregator.flower.settings import RoundSettings

LOST = "lost"
KINDS = ("drops out", "raises", "nonsense", "twin", "other schema")


def kind_of(partition):
    """What the node of a partition does; most are honest."""
    return KINDS[partition % 10] if partition % 10 < len(KINDS) else "honest"


def node_of(folder, partition):
    """A twin has the table and the ledger of an honest node."""
    kind = kind_of(partition)
    if kind == "twin":
        return node(folder, partition + 5)
    if kind == "other schema":
        table = folder / f"other-{partition}.csv"
        table.write_text("weight,readmitted\n70,yes\n")
        return node(folder, partition, table=table)
    return node(folder, partition)


def make_client(folder, first):
    app = ClientApp()

    def handle(message, context):
        partition = first + int(context.node_config["partition-id"])
        kind = kind_of(partition)
        if kind == "drops out":
            return Message(RecordDict({LOST: ConfigRecord({})}), reply_to=message)
        if kind == "raises":
            raise RuntimeError("out of memory")
        if kind == "nonsense":
            return Message(RecordDict({RECORD: ConfigRecord({"share": b"nonsense"})}), reply_to=message)
        return client_app(lambda _: node_of(folder, partition))(message, context)

    app.query(QUERY)(handle)
    return app


class Clock:
    """Time for three rounds of queries, however long each of them takes."""

    now = 0.0

    def __call__(self):
        return self.now

    def sleep(self, _):
        self.now += 400


class Losing:
    """A grid on which answers that are marked get lost: Flower's simulation has no node that says nothing."""

    def __init__(self, grid):
        self._grid = grid

    def get_node_ids(self):
        return list(self._grid.get_node_ids())

    def send_and_receive(self, messages, *, timeout=None):
        replies = self._grid.send_and_receive(messages, timeout=timeout)
        return [reply for reply in replies if reply.has_error() or LOST not in reply.content.config_records]


def main(folder, nodes, first):
    server = ServerApp()

    def run(grid, _):
        while len(list(grid.get_node_ids())) < nodes:
            time.sleep(0.2)
        clock, settings = Clock(), RoundSettings(nodes, 1, 1, 1000.0, None)
        collection = collect(Losing(grid), CAMPAIGN, settings, clock=clock, sleep=clock.sleep)
        told = {"shares": len(collection.state.nodes), "told": collection.told()}
        told["model"] = collection.model(least_nodes=1).to_json()
        (folder / "told.json").write_text(json.dumps(told))

    server.main()(run)
    config = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}, "init_args": {"num_cpus": 2}}
    run_simulation(server, make_client(folder, first), num_supernodes=nodes, backend_config=config)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
