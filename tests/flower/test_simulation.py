"""The round in Flower's own simulation, with 5 nodes and with 40 of which half do something wrong.

Each node is in a process of Ray's; this file is the program, too: ``python test_simulation.py FOLDER NODES``.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="Flower, for Python 3.11, is not installed; make flower")
pytest.importorskip("ray", reason="Flower's simulation is not installed; make flower")

from flower_nodes import CAMPAIGN, node
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.simulation import run_simulation

from ldp_aggregator.flower.client import client_app
from ldp_aggregator.flower.round import QUERY, RoundSettings, answer
from ldp_aggregator.flower.server import collect
from ldp_aggregator.trainers import FederatedState
from ldp_client.testing import FakeClock

ROOT = Path(__file__).resolve().parents[2]
PROBLEMS = {"raises": "failed (", "twin": "sent the share that node"}
"""What the server says of nodes that do this; what else they may send is a matter of ``test_rounds.py``."""


def kind_of(partition):
    """What a node does; None where it is honest, as five of ten are. A twin is an honest one again."""
    return [*[None] * 5, "raises", "raises", "twin", "twin", "twin"][partition % 10]


def main(folder, nodes):
    """Write what the server makes of a round to FOLDER/told.json."""
    client, server = ClientApp(), ServerApp()

    @client.query(QUERY)
    def handle(message, context):
        partition = int(context.node_config["partition-id"])
        if kind_of(partition) == "raises":
            raise RuntimeError("out of memory")
        seed = partition - 5 if kind_of(partition) == "twin" else partition
        return client_app(lambda _: node(folder, seed))(message, context)

    @server.main()
    def run(grid, _):
        while len(list(grid.get_node_ids())) < nodes:
            time.sleep(0.2)
        clock, settings = FakeClock(), RoundSettings(nodes, 1, 1000.0, None)  # Time for three rounds of queries.
        collection = collect(grid, CAMPAIGN, settings, clock=clock.monotonic, sleep=lambda _: clock.sleep(400))
        told = {"told": collection.problem_lines(), "model": collection.state.model(groups=1).to_json()}
        (folder / "told.json").write_text(json.dumps(told))

    config = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}, "init_args": {"num_cpus": 2}}
    run_simulation(server, client, num_supernodes=nodes, backend_config=config)


@pytest.mark.timeout(420)  # The program has 400 seconds.
@pytest.mark.parametrize("nodes", [5, 40])
def test_the_simulated_round_gives_the_model_of_federated_state(tmp_path, nodes):
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests' / 'support'}", "FLWR_TELEMETRY_ENABLED": "0"}
    command = [sys.executable, __file__, str(tmp_path), str(nodes)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400, check=False)
    assert (tmp_path / "told.json").is_file(), done.stdout[-2000:] + done.stderr[-4000:]
    told = json.loads((tmp_path / "told.json").read_text())
    kinds = {partition: kind_of(partition) for partition in range(nodes)}
    honest = [partition for partition, kind in kinds.items() if kind is None]
    shares = {str(name): answer(node(tmp_path, name), {"campaign": CAMPAIGN.document})["share"] for name in honest}
    assert told["model"] == FederatedState(CAMPAIGN, shares).model(groups=1).to_json()
    assert len(told["told"]) == nodes - len(honest)
    for kind, problem in PROBLEMS.items():
        assert sum(problem in line for line in told["told"]) == list(kinds.values()).count(kind)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
