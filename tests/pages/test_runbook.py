"""The runbook is carried out: every command of it runs on a store with a server, and every query is about metrics."""

import json
import re
from datetime import timedelta
from pathlib import Path

import promql_parser
import pytest
from cells import cell_campaign, count
from daemon import Daemon

from ldp_aggregator.__main__ import main
from ldp_aggregator.cli import maintenance
from ldp_aggregator.server.metrics import Metrics
from ldp_aggregator.service.signing import make_key
from ldp_aggregator.store import SqliteStore
from ldp_aggregator.store.contract import utc_now
from ldp_aggregator.store.sqlite.database import FILE_NAME

RUNBOOK = (Path(__file__).resolve().parents[2] / "docs/runbook.md").read_text(encoding="utf-8")
CODE = re.findall(r"`([^`\n]+)`", RUNBOOK)
COMMANDS = sorted({text for text in CODE if text.startswith("ldp-aggregator ")})
QUERIES = sorted({text for text in CODE if re.search(r"\bldp_\w+", text)})
SAYS = {
    "ldp-aggregator backup --made-elsewhere": (1, "the store is a folder"),
    "ldp-aggregator backup /backup/today": (0, "the store is copied to"),
    "ldp-aggregator campaign close ID --seal": (0, "sealed with 5 reports"),
    "ldp-aggregator campaign close ID --seal-now": (0, "sealed with 5 reports"),
    "ldp-aggregator fsck": (0, "2 campaigns are sound"),
    "ldp-aggregator fsck --take-out-damaged": (0, "2 campaigns are sound"),
    "ldp-aggregator key sign": (0, "signed with"),
    "ldp-aggregator status": (0, "healthy"),
}
"""Each command of the runbook: the exit code and what is said, on a store that nothing is wrong with."""


@pytest.fixture
async def campaigns(tmp_path):
    """Two campaigns with five reports each: one closed two days ago, one now."""
    now = utc_now()
    found = []
    (tmp_path / "data").mkdir()
    for days in (2, 0):
        store = SqliteStore(tmp_path / "data" / FILE_NAME, clock=lambda days=days: now - timedelta(days=days))
        campaign = cell_campaign(title=f"{days}")
        await store.create_campaign(campaign)
        await count(store, campaign, range(5))
        await store.close_campaign(campaign.id)
        await store.close()
        found.append(campaign.id)
    return found


def test_the_runbook_has_these_commands_and_no_others():
    assert list(SAYS) == COMMANDS


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_of_the_runbook_is_promql_about_metrics_that_exist(query):
    promql_parser.parse(query)
    metrics = Metrics()
    known = {family.name + end for family in metrics.registry.collect() for end in ("", "_total", "_bucket")}
    assert set(re.findall(r"\bldp_\w+", query)) <= known


def test_every_command_of_the_runbook_does_what_it_says_while_a_server_runs(campaigns, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(maintenance, "BETWEEN", 0.05)
    data, key = tmp_path / "data", tmp_path / "publisher.key"
    make_key(key)
    days_ago, now = campaigns
    sign = ["--version", "1", "--expires-in", "60", "--campaign", now, "--output", str(tmp_path / "directory.json")]
    with Daemon(data) as daemon:
        for command in reversed(COMMANDS):
            words = command.split()[1:]
            more = {"key": [str(key), *sign], "status": ["--operations", daemon.operations]}.get(words[0], [])
            campaign = now if "--seal-now" in words else days_ago
            words = [{"ID": campaign, "/backup/today": str(tmp_path / "today")}.get(word, word) for word in words]
            code = main([*words, *more, *([] if words[0] == "key" else ["--data", str(data)])])
            told = capsys.readouterr()
            assert (code, SAYS[command][1] in told.out + told.err) == (SAYS[command][0], True), (command, told)
    assert main(["fsck", "--data", str(tmp_path / "today")]) == 0
    capsys.readouterr()
    assert main(["status", "--log", "--json", "--data", str(data)]) == 0
    acts = [(act["act"], act["outcome"]) for act in json.loads(capsys.readouterr().out)]
    assert ("back up store", "done") in acts
    assert acts.count(("seal campaign", "done")) == 2
