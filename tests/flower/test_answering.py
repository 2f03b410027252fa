"""A node's half: it answers the one campaign that it agreed to, within its cap, and always with the same bytes."""

import multiprocessing
from importlib import import_module
from pathlib import Path

import pytest
from drafts import draft, number
from flower_nodes import CAMPAIGN, LABEL, OTHER, node, rows, write_table

from ldp_aggregator.flower.round import NODE_KEYS, answer, node_settings, refusal, round_settings
from ldp_aggregator.node_statistics import decode_share
from ldp_aggregator.trainers.node_ledger import NodeLedger
from ldp_aggregator.trainers.schemas import Schema
from ldp_aggregator.trainers.statistics import statistics_of
from ldp_protocols import Campaign, LdpError
from ldp_protocols.campaign import document_id

ASKED = {"campaign": CAMPAIGN.document}
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "flower"


def refused(settings, values=ASKED):
    with pytest.raises(LdpError) as caught:
        answer(settings, values)
    return caught.value


def test_processes_on_one_ledger_hand_out_one_share(tmp_path):
    write_table(tmp_path / "table.csv", 1)
    context = multiprocessing.get_context("fork")
    results, at_once = context.Queue(), context.Barrier(4)

    def answers():
        at_once.wait(60)
        results.put(answer(node(tmp_path, table=tmp_path / "table.csv"), ASKED)["share"])

    processes = [context.Process(target=answers) for _ in range(4)]
    for process in processes:
        process.start()
    shares = {results.get(timeout=120) for _ in processes}
    for process in processes:
        process.join()
    assert len(shares) == 1


def test_the_share_is_the_tables_statistics_with_noise_and_every_repeat_is_the_same_stored_bytes(tmp_path):
    """At epsilon 1 the noise of a count has a standard deviation of at most 6; 100 are more than 16 of them."""
    schema, settings = Schema.of_campaign(CAMPAIGN), node(tmp_path)
    frame, labels = rows(1)
    exact = statistics_of(schema, frame, schema.classes_of(labels, len(frame)))
    first = answer(settings, ASKED)
    noisy = decode_share(first["share"], CAMPAIGN)
    assert noisy.shape == exact.shape == (12,)
    assert (noisy != exact).any()
    assert abs(noisy - exact)[:2].max() < 100
    settings.table.unlink()
    assert [answer(settings, ASKED) for _ in range(3)] == [first] * 3


def test_another_campaign_than_the_agreed_one_is_refused_whatever_it_costs(tmp_path):
    settings = node(tmp_path, max_epsilon=100.0)
    for document in (OTHER.document, CAMPAIGN.document.replace(b"Hospitals", b"Hospital5")):
        assert refused(settings, {"campaign": document}).code == "other-campaign"
    assert not settings.ledger.exists()


def test_a_query_that_is_none_and_a_document_that_the_node_agreed_to_and_cannot_read_are_refused(tmp_path):
    broken = CAMPAIGN.document[:-1]
    for campaign_id, values in (
        (CAMPAIGN.id, {}),
        (CAMPAIGN.id, {"campaign": "text"}),
        (CAMPAIGN.id, {**ASKED, "table": "/etc/passwd"}),
        (CAMPAIGN.id, {"document": CAMPAIGN.document}),
        (document_id(broken), {"campaign": broken}),
    ):
        assert refused(node(tmp_path, campaign_id=campaign_id), values).code == "unreadable-document"


def test_a_campaign_above_the_cap_is_refused_and_costs_nothing_and_the_cap_counts_all_campaigns_of_the_ledger(tmp_path):
    settings = node(tmp_path, max_epsilon=0.99)
    error = refused(settings)
    assert error.code == "above-cap"
    assert "costs epsilon 1; 0 of this node's 0.99 is spent" in str(error)
    assert NodeLedger(settings.ledger).share(CAMPAIGN.id) is None
    settings = node(tmp_path)
    answer(settings, ASKED)
    again = Campaign.compile(draft(number("age", 18, 90), label=LABEL, privacy={"epsilon": 0.1}))
    second = node(tmp_path, campaign_id=again.id, max_epsilon=1.0999)
    assert refused(second, {"campaign": again.document}).code == "above-cap"
    enough = node(tmp_path, campaign_id=again.id, max_epsilon=1.1)
    assert answer(enough, {"campaign": again.document})["share"] != answer(settings, ASKED)["share"]


def test_caps_are_exact_sums(tmp_path):
    ledger = NodeLedger(tmp_path / "ledger.db")
    for place in range(10):
        ledger.keep(f"campaign {place}", 0.1, b"share", max_epsilon=1.0)
    with pytest.raises(LdpError, match="is spent"):
        ledger.keep("one more", 1e-12, b"share", max_epsilon=1.0)
    assert ledger.keep("campaign 0", 0.1, b"another share", max_epsilon=1.0) == b"share", "the first one decides"


NOT_READY = {"refused": "not-ready", "why": "the node cannot answer now; its own log says why"}
LACKING = {"refused": "other-schema", "why": "the node's table has no column 'age'"}


@pytest.mark.parametrize(
    ("text", "told"),
    [("", NOT_READY), (None, NOT_READY), ("secret_column,ward,readmitted\n1,heart,yes\n", LACKING)],
    ids=["no header", "no file", "another header"],
)
def test_what_is_wrong_with_a_table_stays_at_the_node_but_for_the_documents_name_of_a_column(tmp_path, text, told):
    table = tmp_path / "wrong.csv"
    if text is not None:
        table.write_text(text)
    settings = node(tmp_path, table=table)
    error = refused(settings)
    assert refusal(error) == told
    assert error.__cause__ or told is LACKING
    write_table(table, 1)
    assert set(answer(settings, ASKED)) == {"share"}


def test_a_damaged_ledger_is_not_overwritten(tmp_path):
    settings, damaged = node(tmp_path), b"no database" * 100
    settings.ledger.write_bytes(damaged)
    error = refused(settings)
    assert error.code == "not-ready"
    assert "ledger" in str(error.__cause__)
    assert settings.ledger.read_bytes() == damaged


@pytest.mark.parametrize(
    "rows", ["", "50,heart,private label", "private number,heart,yes", "50", ",heart,yes\n300,unheard of,yes\n54,,yes"]
)
def test_whether_a_node_answers_anyway_does_not_depend_on_a_row(tmp_path, rows, caplog):
    table = tmp_path / "odd.csv"
    table.write_text(f"age,ward,readmitted\n{rows}\n")
    error = refused(node(tmp_path, table=table))
    assert refusal(error) == NOT_READY
    assert "nothing was drawn: " in caplog.text
    assert "private" not in caplog.text
    share = decode_share(answer(node(tmp_path, table=table, anyway=True), ASKED)["share"], CAMPAIGN)
    assert abs(share[:2]).max() < 100
    assert (share != 0).any()


GOOD_NODE = {"table": "t.csv", "ledger": "l.db", "campaign-id": CAMPAIGN.id, "max-epsilon": 1}
GOOD_RUN = {"nodes": 5, "least-nodes": 4, "seconds": 60, "output": ""}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("table", None, "is missing"),
        ("ledger", "", "is missing"),
        ("campaign-id", 5, "is missing"),
        *(("max-epsilon", value, "must be a finite number") for value in ("1", True, float("inf"))),
        ("max-epsilon", 0, "must be above 0"),
        ("nodes", 2.0, "must be a whole number"),
        ("least-nodes", 6, r"must be from 1 to nodes \(5\), not 6"),
        ("least-nodes", 0, "must be from 1"),
        ("groups", 5, "are in the draft now"),
        ("seconds", 0, "must be above 0"),
        ("output", 5, "must be a file's name"),
    ],
)
def test_a_configuration_that_lacks_something_or_cannot_be_says_what(name, value, message):
    assert (node_settings(GOOD_NODE).max_epsilon, round_settings(GOOD_RUN).output) == (1.0, None)
    settings, good = (node_settings, GOOD_NODE) if name in GOOD_NODE else (round_settings, GOOD_RUN)
    with pytest.raises(ValueError, match=f"{name} {message}"):
        settings(good | {name: value})


def test_the_example_names_every_setting_of_a_node_and_makes_up_tables_of_its_campaign(monkeypatch, tmp_path):
    readme = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    for key in NODE_KEYS:
        assert f"{key}=" in readme
    monkeypatch.syspath_prepend(str(EXAMPLE))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made_up = import_module("hospitals.made_up")
    settings = made_up.simulated_node(1, 2)
    assert settings.table.is_relative_to(tmp_path)
    assert set(answer(settings, {"campaign": made_up.CAMPAIGN.document})) == {"share"}
