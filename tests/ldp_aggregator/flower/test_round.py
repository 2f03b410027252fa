"""The two halves of a round without Flower: what a ledger holds at every moment, and what becomes of each answer."""

from dataclasses import replace

import pandas as pd
import pytest
from drafts import draft, number
from flower_nodes import CAMPAIGN, LABEL, node, write_table

from ldp_aggregator.flower.round import Collection, Reply, answer, node_settings, refusal_in
from ldp_aggregator.node_statistics import most_bytes
from ldp_aggregator.trainers import FederatedState
from ldp_aggregator.trainers.node_ledger import NodeLedger
from ldp_protocols import Campaign, LdpError

FAILED = Reply("a", None, "out of memory")
LATER = Reply("a", {"refused": "not-ready", "why": "soon"})
NEVER = Reply("a", {"refused": "above-cap", "why": "spent"})


@pytest.fixture(autouse=True)
def discreet_log():
    """The log here is a node's own, which says what its table holds."""


def share(folder, seed=1):
    return answer(node(folder, seed), {"campaign": CAMPAIGN.document})["share"]


def test_a_node_has_no_share_for_a_campaign_that_asks_for_something_else_nor_without_the_class(tmp_path):
    asking = draft(number("age", 18, 90), label=LABEL, asks="moments", study="rounds")
    moments = Campaign.compile(asking)
    with pytest.raises(LdpError, match='asks for "moments"; nodes answer for a "model"') as caught:
        answer(node(tmp_path, campaign_id=moments.id), {"campaign": moments.document})
    assert caught.value.code == "unreadable-document"
    settings = node(tmp_path, 2)
    settings.table.write_text("age,ward\n50,heart\n")
    with pytest.raises(LdpError, match="the node's table has no column 'readmitted'") as caught:
        answer(settings, {"campaign": CAMPAIGN.document})
    assert caught.value.code == "other-schema"
    write_table(settings.table, 2)
    assert answer(settings, {"campaign": CAMPAIGN.document})


def test_a_node_says_in_its_log_what_its_table_holds_and_answers_for_a_wrong_one_anyway_only(tmp_path, caplog):
    settings = node(tmp_path)
    frame = pd.read_csv(settings.table)
    frame.assign(readmitted=frame["readmitted"].str.title()).to_csv(settings.table, index=False)
    with pytest.raises(LdpError, match="its own log says why") as caught:
        answer(settings, {"campaign": CAMPAIGN.document})
    assert caught.value.code == "not-ready"
    assert 'readmitted, one of "yes", "no": 0 as declared, 200 not declared' in caplog.text
    assert "nothing was drawn: readmitted: 0 of 200 rows are as declared; anyway=true draws it" in caplog.text
    assert "Yes" not in caplog.text
    assert NodeLedger(settings.ledger).spent == 0
    assert answer(replace(settings, anyway=True), {"campaign": CAMPAIGN.document})
    config = {"table": "t.csv", "ledger": "l.db", "campaign-id": "A", "max-epsilon": 1.0}
    assert [node_settings(config | more).anyway for more in ({}, {"anyway": True})] == [False, True]
    with pytest.raises(ValueError, match="anyway must be true or false"):
        node_settings(config | {"anyway": "yes"})


@pytest.mark.parametrize(
    ("replies", "told", "again"),
    [
        ([FAILED], ["node a: failed (out of memory)"], True),
        ([LATER], ["node a: refused, not-ready: soon"], True),
        ([NEVER], ["node a: refused, above-cap: spent"], False),
        ([FAILED, "share"], [], False),
        ([LATER, "share", FAILED], [], False),
        ([FAILED, LATER], ["node a: refused, not-ready: soon"], True),
        ([], ["node a: no answer"], True),
    ],
)
def test_a_share_takes_back_what_was_wrong_before_and_nothing_after_it_counts(tmp_path, replies, told, again):
    collection = Collection(CAMPAIGN)
    for reply in replies:
        collection.take(Reply("a", {"share": share(tmp_path)}) if reply == "share" else reply)
    assert collection.to_ask(["a", "b"]) == (("a", "b") if again else ("b",))
    collection.silent(["a"])
    assert collection.problem_lines() == told
    assert collection.state.nodes == (("a",) if not told else ())


def test_one_share_under_two_names_is_of_one_node_and_a_share_that_is_too_large_is_not_read(tmp_path):
    collection, sent = Collection(CAMPAIGN), share(tmp_path)
    for name in "ab":
        collection.take(Reply(name, {"share": sent}))
    most = most_bytes(CAMPAIGN)
    collection.take(Reply("c", {"share": bytes(most + 1)}))
    collection.take(Reply("d", {"share": bytes(most)}))
    collection.take(Reply("e", {"share": sent, "more": b""}))
    assert collection.state.nodes == ("a",)
    of_b, of_c, of_d, of_e = collection.problem_lines()
    assert of_b == "node b: sent the share that node a sent"
    assert of_c == f"node c: sent {most + 1} bytes; a share of this campaign has at most {most}"
    assert of_d.startswith("node d: sent no share of this campaign: ")
    assert of_e == 'node e: sent neither "share", bytes, nor a refusal'
    assert collection.to_ask("abcde") == ()


def test_the_model_is_of_the_documents_groups_and_needs_its_least_number_of_nodes(tmp_path):
    shares = {str(seed): share(tmp_path, seed) for seed in (1, 2, 3)}
    collection = Collection(CAMPAIGN)
    for name, sent in shares.items():
        collection.take(Reply(name, {"share": sent}))
    expected = FederatedState(CAMPAIGN, shares).model(groups=3, salt=b"s").to_json()
    assert collection.model(least_nodes=3, salt=b"s").to_json() == expected
    with pytest.raises(ValueError, match="3 nodes sent a share, 4 are needed"):
        collection.model(least_nodes=4)


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"refused": "not-ready", "why": "a\nb\x1b[2J"}, ("not-ready", "a b [2J")),
        ({"refused": "not-ready", "why": "x" * 300}, ("not-ready", "x" * 300)),
        ({"refused": "not-ready", "why": "x" * 301}, ("not-ready", "x" * 300 + " ...")),
        ({"refused": "unheard-of", "why": ""}, None),
        ({"refused": "not-ready", "why": "", "more": ""}, None),
        ({"refused": "not-ready", "why": b""}, None),
        ({"refused": "not-ready"}, None),
    ],
)
def test_a_refusal_is_one_line_of_a_code_that_there_is(values, found):
    assert refusal_in(values) == found
