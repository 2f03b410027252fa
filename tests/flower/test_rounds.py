"""One round of queries: the model is that of FederatedState, or the error says which node and why."""

from importlib import import_module
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="Flower, for Python 3.11, is not installed; make flower")

from flower_nodes import CAMPAIGN, OTHER, Loop, node
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from ldp_aggregator.flower.client import client_app
from ldp_aggregator.flower.round import MESSAGE_TYPE, QUERY, RECORD, Collection, Reply, RoundSettings, answer
from ldp_aggregator.flower.server import collect, finish, publish, server_app
from ldp_aggregator.trainers import FederatedState
from ldp_client.testing import FakeClock

SETTINGS = RoundSettings(nodes=5, least_nodes=3, seconds=10.0, output=None)


def honest(folder, seed, **changes):
    settings = node(folder, seed, **changes)
    return client_app(lambda _: settings)


def sending(values):
    """An app that answers whatever it is asked with these values."""
    app = ClientApp()

    def handle(message, _):
        content = {} if values is None else {RECORD: ConfigRecord(values)}
        return Message(RecordDict(content), reply_to=message)

    app.query(QUERY)(handle)
    return app


def failing(message, _):
    raise RuntimeError("out of \x1b[31mmemory\n" + "x" * 1000)


def run(apps, settings=SETTINGS):
    clock, grid = FakeClock(), Loop(apps)
    return grid, collect(grid, CAMPAIGN, settings, clock=clock.monotonic, sleep=clock.sleep)


def shares_on_disk(folder, seeds):
    return {str(seed): answer(node(folder, seed), {"campaign": CAMPAIGN.document})["share"] for seed in seeds}


def model_of(shares, **how):
    """The text of the model that has to come of these shares."""
    return FederatedState(CAMPAIGN, shares).model(**how).to_json()


def test_nodes_that_are_wrong_are_named_with_the_reason_and_the_others_make_the_model(tmp_path):
    table = tmp_path / "other.csv"
    table.write_text("weight,readmitted\n70,yes\n")
    other = node(tmp_path, 50, campaign_id=OTHER.id, table=table)
    apps = {
        **{seed: honest(tmp_path, seed) for seed in (1, 2, 3)},
        10: None,
        11: failing,
        12: sending({"share": b"nonsense"}),
        13: sending({"share": 5}),
        14: sending(None),
        15: sending({"refused": "because", "why": ""}),
        16: sending({"share": answer(other, {"campaign": OTHER.document})["share"]}),
        17: honest(tmp_path, 17, table=table),
        18: honest(tmp_path, 18, max_epsilon=0.5),
        19: honest(tmp_path, 19, campaign_id=OTHER.id),
        21: sending({"share": bytes(100_000)}),
        22: sending({"refused": "not-ready", "why": "a \x1b[2Jclear"}),
    }
    grid, collection = run(apps, RoundSettings(nodes=15, least_nodes=3, seconds=3.0, output=None))
    assert collection.model(least_nodes=3).to_json() == model_of(shares_on_disk(tmp_path, (1, 2, 3)))
    told = "\n".join(collection.problem_lines())
    for line in (
        "node 10: no answer",
        "node 11: failed (<class 'RuntimeError'>:<out of  [31mmemory x",
        "node 12: sent no share of this campaign: not one msgpack value",
        'node 13: sent neither "share", bytes, nor a refusal',
        'node 14: sent neither "share", bytes, nor a refusal',
        'node 15: sent neither "share", bytes, nor a refusal',
        "node 16: sent no share of this campaign: the share is for another campaign than " + CAMPAIGN.id,
        "node 17: refused, other-schema: the node's table has no column 'age'",
        "node 18: refused, above-cap: the campaign costs epsilon 1; 0 of this node's 0.5 is spent",
        "node 19: refused, other-campaign: the document's SHA-256 is",
        "node 21: sent 100000 bytes; a share of this campaign has at most",
        "node 22: refused, not-ready: a  [2Jclear",
    ):
        assert line in told
    assert len(collection.problem_lines()) == 12
    assert max(map(len, collection.problem_lines())) < 400
    with pytest.raises(ValueError, match="3 nodes sent a share, 4 are needed; node 10: no answer; node 11: fail"):
        collection.model(least_nodes=4)
    asked = {name: grid.asked.count(name) for name in apps}
    assert {name for name, times in asked.items() if times > 1} == {10, 11, 22}, "the others' answers are final"


def test_a_node_that_is_late_is_asked_again_and_answers_the_same(tmp_path):
    late = honest(tmp_path, 5)
    calls = []

    def app(message, context):
        calls.append(late(message, context).content.config_records[RECORD]["share"])
        if len(calls) < 3:
            raise TimeoutError
        return late(message, context)

    _, collection = run({**{seed: honest(tmp_path, seed) for seed in range(1, 5)}, 5: app})
    assert len(calls) == 3
    assert len(set(calls)) == 1
    assert collection.model(least_nodes=5).to_json() == model_of(shares_on_disk(tmp_path, range(1, 6)))
    assert collection.problem_lines() == []


def test_nodes_that_join_while_the_round_runs_are_asked(tmp_path):
    grid, clock = Loop({1: honest(tmp_path, 1)}), FakeClock()

    def sleep(seconds):
        clock.sleep(seconds)
        grid.apps |= {2: honest(tmp_path, 2)}
        grid.contexts |= {2: grid.contexts[1]}

    settings = RoundSettings(nodes=2, least_nodes=2, seconds=10.0, output=None)
    collection = collect(grid, CAMPAIGN, settings, clock=clock.monotonic, sleep=sleep)
    assert collection.state.nodes == ("1", "2")
    assert clock.elapsed < 10


@pytest.mark.parametrize(("nodes", "waited"), [(3, False), (2, True)])
def test_a_node_that_drops_out_inside_the_round_is_told_of_and_the_others_make_the_model(tmp_path, nodes, waited):
    """It is asked, never answers and leaves; the round waits for another in its place where there is one to come."""
    grid, clock = Loop({1: honest(tmp_path, 1), 2: None}), FakeClock()

    def sleep(seconds):
        clock.sleep(seconds)
        grid.apps.pop(2, None)
        if waited:
            grid.apps[3], grid.contexts[3] = honest(tmp_path, 3), grid.contexts[1]

    settings = RoundSettings(nodes=nodes, least_nodes=1, seconds=10.0, output=None)
    collection = collect(grid, CAMPAIGN, settings, clock=clock.monotonic, sleep=sleep)
    assert collection.problem_lines() == ["node 2: no answer"]
    answered = {"1": 1, "3": 3} if waited else {"1": 1}
    expected = shares_on_disk(tmp_path, answered.values())
    assert collection.model(least_nodes=1).to_json() == model_of(expected)
    assert (clock.elapsed < 10) == waited


def test_one_node_under_two_names_or_twice_counts_once_and_a_new_share_is_counted_against_it(tmp_path):
    _, collection = run({name: honest(tmp_path, seed) for name, seed in ((1, 1), (2, 1), (3, 3), (4, 4))})
    assert collection.problem_lines() == ["node 2: sent the share that node 1 sent"]
    assert collection.model(least_nodes=3).to_json() == model_of(shares_on_disk(tmp_path, (1, 3, 4)))
    first, other = shares_on_disk(tmp_path, (1, 2)).values()
    collection = Collection(CAMPAIGN)
    for share in (first, first):
        collection.take(Reply("1", {"share": share}))
    assert collection.model(least_nodes=1).to_json() == model_of({"1": first})
    collection.take(Reply("1", {"share": other}))
    state = FederatedState(CAMPAIGN, {"1": first})
    state.put("1", other)
    model = collection.model(least_nodes=1)
    assert model.to_json() == state.model().to_json()
    assert model.guarantee_.epsilon == 2


def test_an_exception_at_a_node_tells_the_server_nothing_of_its_table():
    def settings_of(_):
        raise RuntimeError("row 7 says that Ada has diabetes")

    asked = RecordDict({RECORD: ConfigRecord({"campaign": CAMPAIGN.document})})
    grid = Loop({1: client_app(settings_of)})
    (reply,) = grid.send_and_receive([Message(asked, dst_node_id=1, message_type=MESSAGE_TYPE)])
    assert dict(reply.content.config_records[RECORD])["refused"] == "not-ready"
    assert "Ada" not in str(reply.content)


@pytest.mark.parametrize("message_type", ["query", "query.other", "train", "evaluate", "train.nb_share"])
def test_a_node_answers_no_other_message(tmp_path, message_type):
    app = honest(tmp_path, 1)
    grid = Loop({1: app})
    message = Message(RecordDict(), dst_node_id=1, message_type=message_type)
    with pytest.raises(ValueError, match="registered"):
        app(message, grid.contexts[1])


def test_the_server_app_prints_the_guarantee_and_writes_the_model(tmp_path, capsys):
    config = {"nodes": 3, "least-nodes": 3, "seconds": 10.0, "output": str(tmp_path / "model.json")}
    context = Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config=config)
    server_app(CAMPAIGN)(Loop({seed: honest(tmp_path, seed) for seed in (1, 2, 3)}), context)
    told = capsys.readouterr().out
    assert "model of 3 nodes; epsilon = 1; relation: add or remove one row" in told
    assert '"groups":3' in (tmp_path / "model.json").read_text()


def test_without_a_file_the_model_is_printed_and_too_few_shares_are_told_before_the_run_fails(tmp_path, capsys):
    _, collection = run({seed: honest(tmp_path, seed) for seed in (1, 2, 3, 4)})
    model = finish(collection, SETTINGS)
    publish(model, SETTINGS)
    assert model.to_json() in capsys.readouterr().out
    assert CAMPAIGN.id in model.model_.training["campaigns"]
    _, collection = run({1: honest(tmp_path, 1), 2: None})
    with pytest.raises(ValueError, match="1 nodes sent a share, 3 are needed; node 2: no answer"):
        finish(collection, SETTINGS)
    assert "node 2: no answer" in capsys.readouterr().out


def test_an_example_node_makes_up_a_table_in_a_simulation_only(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "examples" / "flower"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    settings_of = import_module("hospitals.client_app").settings_of

    def context(config):
        return Context(run_id=1, node_id=1, node_config=config, state=RecordDict(), run_config={})

    assert settings_of(context({"partition-id": 1, "num-partitions": 5}))
    for config in ({}, {"partition-id": 1}, {"partition-id": 1, "num-partitions": 5, "max-epsilon": 1.0}):
        with pytest.raises(ValueError, match="table is missing"):
            settings_of(context(config))
