"""The masked sum over Flower's own SecAgg+: exact, of the agreed parameters only, and each share in one sum."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flwr", reason="Flower, for Python 3.11, is not installed; make flower")

from flower_nodes import CAMPAIGN, Loop, node, rows
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.server.workflow import SecAggPlusWorkflow

import ldp_aggregator.flower.masked_sum.client as client
import ldp_aggregator.flower.masked_sum.server as server
from ldp_aggregator.flower.answering import answer
from ldp_aggregator.flower.masked_sum.agreement import WORDS, Agreement
from ldp_aggregator.flower.masked_sum.client import Member, masked_client_app
from ldp_aggregator.flower.masked_sum.server import SumError, masked_server_app
from ldp_aggregator.flower.messages import NodeRefusalError
from ldp_aggregator.node_statistics import DistributedShare, decode_distributed
from ldp_aggregator.trainers import combine, distributed_statistics, model_of_sum


class Sum:
    """A masked sum of honest nodes, some of which stop answering at a stage."""

    def __init__(self, folder: Path, nodes: int, honest: int, monkeypatch: Any, **changes: Any) -> None:
        self.shares: list[bytes] = []
        self.agreement = Agreement(nodes, honest)
        self.stages: dict[int, list[str]] = {}

        def drawn(*arguments: Any, **numbers: Any) -> bytes:
            self.shares.append(distributed_statistics(*arguments, **numbers))
            return self.shares[-1]

        monkeypatch.setattr(client, "distributed_statistics", drawn)
        members = {name: Member(node(folder, name, **changes), self.agreement) for name in range(1, nodes + 1)}
        self.grid = Loop({name: masked_client_app(lambda _, who=who: who) for name, who in members.items()})

    def without(self, names: range, stage: str) -> None:
        """These nodes do what they are asked up to this stage, and their answer to it is lost."""
        for name in names:
            self.grid.apps[name] = _silent_at(self.grid.apps[name], stage)

    def run(self, folder: Path, **changes: Any) -> tuple[tuple[int, ...], str]:
        config = {
            "nodes": self.agreement.nodes,
            "honest": self.agreement.honest,
            "seconds": 60.0,
            "output": str(folder / "model.json"),
        }
        context = Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config=config | changes)
        totals: list[tuple[int, ...]] = []
        masked_server_app(CAMPAIGN, totals.append)(self.grid, context)
        return totals[0], (folder / "model.json").read_text()


def _silent_at(app, stage):
    def call(message, context):
        # Read before the call: Flower's mod takes the stage out of the message.
        lost = message.content.config_records["secaggplus_configs"]["stage"] == stage
        reply = app(message, context)
        if lost:
            raise TimeoutError("no answer")
        return reply

    return call


@pytest.mark.parametrize(("nodes", "honest"), [(3, 2), (5, 4), (10, 7), (20, 14)])
def test_the_sum_is_exact_and_the_model_is_that_of_the_shares(tmp_path, monkeypatch, capsys, nodes, honest):
    asked = Sum(tmp_path, nodes, honest, monkeypatch)
    total, text = asked.run(tmp_path)
    assert total == combine(CAMPAIGN, asked.shares)
    assert text == model_of_sum(CAMPAIGN, total).to_json()
    assert WORDS in capsys.readouterr().out


def test_nodes_that_drop_out_after_sharing_their_secrets_are_left_out_of_the_sum(tmp_path, monkeypatch):
    asked = Sum(tmp_path, 10, 7, monkeypatch)
    asked.without(range(1, 4), "collect_masked_vectors")
    total, _ = asked.run(tmp_path)
    assert len(asked.shares) == 10
    assert total[:2] == (7, 70)
    assert [combine(CAMPAIGN, some) for some in combinations(asked.shares, 7)].count(total) == 1


@pytest.mark.parametrize(
    ("stage", "gone"),
    [("setup", 1), ("share_keys", 1), ("collect_masked_vectors", 4)],
    ids=["keys", "secrets", "share"],
)
def test_a_sum_that_lost_too_many_does_not_come_about(tmp_path, monkeypatch, stage, gone):
    asked = Sum(tmp_path, 10, 7, monkeypatch)
    asked.without(range(1, gone + 1), stage)
    with pytest.raises(SumError, match=r"there is no sum of 10 nodes, of which 7 .*: node 1: <.*no answer"):
        asked.run(tmp_path)


def test_a_share_is_in_one_sum_only(tmp_path, monkeypatch):
    asked = Sum(tmp_path, 3, 2, monkeypatch)
    asked.run(tmp_path)
    assert len(asked.shares) == 3
    again = Sum(tmp_path, 3, 2, monkeypatch)  # New processes, new state: what is left is the ledger.
    with pytest.raises(SumError, match=r"node 1: .*the node took part in this campaign with another kind of noise"):
        again.run(tmp_path)
    settings = node(tmp_path, 1)
    with pytest.raises(NodeRefusalError, match="another kind of noise"):
        answer(settings, {"campaign": CAMPAIGN.document})


def test_a_second_sum_in_one_run_is_refused_before_any_noise_is_drawn(tmp_path, monkeypatch):
    asked = Sum(tmp_path, 3, 2, monkeypatch)
    asked.run(tmp_path)
    with pytest.raises(SumError, match=r"node 1: .*share is in a sum already; a second one would show it"):
        asked.run(tmp_path)
    assert len(asked.shares) == 3


def test_who_answered_with_all_the_noise_is_in_no_masked_sum(tmp_path, monkeypatch):
    asked = Sum(tmp_path, 3, 2, monkeypatch)
    answer(node(tmp_path, 2), {"campaign": CAMPAIGN.document})
    with pytest.raises(SumError, match=r"node 2: .*another kind of noise"):
        asked.run(tmp_path)


def test_nodes_that_agreed_to_other_numbers_do_not_take_part(tmp_path, monkeypatch):
    asked = Sum(tmp_path, 5, 4, monkeypatch)
    for changes, why in (
        ({"honest": 1}, "threshold must be 4, not 5"),
        ({"nodes": 4, "honest": 3}, "sample_num must be 5"),
    ):
        with pytest.raises(SumError, match=why):
            asked.run(tmp_path, **changes)
    assert asked.shares == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_weight", 1000.0), ("clipping_range", 8.0), ("quantization_range", 1 << 22), ("modulus_range", 1 << 30)],
    ids=["max_weight", "clipping_range", "target_range", "mod_range"],
)
def test_nodes_refuse_a_workflow_with_other_parameters(tmp_path, monkeypatch, request, name, value):
    asked = Sum(tmp_path, 3, 2, monkeypatch)
    monkeypatch.setattr(
        server, "SecAggPlusWorkflow", lambda *numbers, **named: SecAggPlusWorkflow(*numbers, **named | {name: value})
    )
    with pytest.raises(SumError, match=f"node 3: .*{request.node.callspec.id} must be "):
        asked.run(tmp_path)
    assert asked.shares == []


def test_nothing_but_constants_travels_in_clear(tmp_path, monkeypatch):
    asked = Sum(tmp_path, 3, 2, monkeypatch)
    seen = []
    app = asked.grid.apps[1]

    def watching(message, context):
        reply = app(message, context)
        seen.append(reply.content)
        return reply

    asked.grid.apps[1] = watching
    asked.run(tmp_path)
    keys, secrets, share, unmasked = seen
    assert [set(content) for content in (keys, secrets, unmasked)] == [{"secaggplus_configs"}] * 3
    beside = {name: dict(record) for name, record in share.items() if name != "secaggplus_configs"}
    assert beside == {
        "fitres.parameters": {},
        "fitres.num_examples": {"num_examples": 1},
        "fitres.metrics": {},
        "fitres.status": {"code": 0, "message": ""},
    }
    assert set(share["secaggplus_configs"]) == {"masked_params"}


def test_an_exception_at_a_node_tells_the_server_nothing_of_its_table(tmp_path, monkeypatch):
    table = tmp_path / "private-table.csv"  # which is not there
    asked = Sum(tmp_path, 3, 2, monkeypatch, table=table)
    errors = []
    send = asked.grid.send_and_receive

    def watching(messages, *, timeout=None):
        replies = send(messages, timeout=timeout)
        errors.extend(reply.error.reason for reply in replies if reply.has_error())
        return replies

    asked.grid.send_and_receive = watching
    with pytest.raises(SumError):
        asked.run(tmp_path)
    assert len(errors) == 3
    assert all("the node cannot answer now" in reason and "private" not in reason for reason in errors)


@pytest.mark.parametrize("message_type", ["query.nb_share", "evaluate", "train.other", "get_parameters"])
def test_a_member_answers_no_other_message(tmp_path, monkeypatch, message_type):
    asked = Sum(tmp_path, 3, 2, monkeypatch)
    message = Message(RecordDict(), dst_node_id=1, message_type="train")
    message.metadata.__dict__["_message_type"] = message_type
    with pytest.raises(ValueError, match=r"registered|Invalid message type"):
        asked.grid.apps[1](message, asked.grid.contexts[1])


def test_a_reply_with_more_than_constants_in_clear_does_not_leave(tmp_path):
    message = Message(RecordDict(), dst_node_id=1, message_type="train")
    Loop({})
    content = RecordDict(
        {
            "fitres.parameters": ArrayRecord(),
            "fitres.num_examples": client.compat.MetricRecord({"num_examples": 812}),
            "fitres.metrics": ConfigRecord({}),
        }
    )
    with pytest.raises(ValueError, match="number of examples travels in clear"):
        client._check_reply(Message(content, reply_to=message))


def test_two_nodes_with_unlike_agreements_give_no_model():
    one = decode_distributed(distributed_statistics(CAMPAIGN, *rows(1), nodes=3, honest=2), CAMPAIGN)
    other = DistributedShare(one.vector, 4, 2, 7)
    total = (one.summand() + one.summand() + other.summand()).tolist()
    with pytest.raises(ValueError, match="no sum of shares for equally many nodes"):
        model_of_sum(CAMPAIGN, total)
