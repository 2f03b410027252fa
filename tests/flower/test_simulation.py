"""The round in Flower's own simulation, with 5 and with 40 nodes of which half do something wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="Flower, for Python 3.11, is not installed; make flower")
pytest.importorskip("ray", reason="Flower's simulation is not installed; make flower")

from flower_nodes import CAMPAIGN, node
from flower_simulation import kind_of

from ldp_aggregator.flower.answering import answer
from ldp_aggregator.trainers import FederatedState

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tests" / "support" / "flower_simulation.py"
WORDS = {
    "drops out": "no answer",
    "raises": "failed (",
    "nonsense": "sent no share of this campaign",
    "twin": "sent the share that node",
    "other schema": "refused, other-schema: the node's table has no column 'age'",
}


@pytest.mark.parametrize("nodes", [5, 40])
def test_the_simulated_round_gives_the_model_of_federated_state(tmp_path, nodes):
    # Five nodes are numbered so that they are all honest; of forty, half are.
    first = 5 if nodes == 5 else 0
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{PROGRAM.parent}", "FLWR_TELEMETRY_ENABLED": "0"}
    command = [sys.executable, str(PROGRAM), str(tmp_path), str(nodes), str(first)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400, check=False)
    assert (tmp_path / "told.json").is_file(), done.stdout[-2000:] + done.stderr[-4000:]
    told = json.loads((tmp_path / "told.json").read_text())
    kinds = {partition: kind_of(partition) for partition in range(first, first + nodes)}
    honest = [partition for partition, kind in kinds.items() if kind == "honest"]
    assert told["shares"] == len(honest)
    shares = {str(name): answer(node(tmp_path, name), {"campaign": CAMPAIGN.document})["share"] for name in honest}
    assert told["model"] == FederatedState(CAMPAIGN, shares).model().to_json()
    wrong = [kind for kind in kinds.values() if kind != "honest"]
    assert len(told["told"]) == len(wrong)
    for kind in set(wrong):
        assert sum(WORDS[kind] in line for line in told["told"]) >= wrong.count(kind)
