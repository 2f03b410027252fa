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

TESTS = Path(__file__).resolve().parents[1]
RUNBOOK = (TESTS.parent / "docs/runbook.md").read_text(encoding="utf-8")
CODE = re.findall(r"`([^`\n]+)`", RUNBOOK)
COMMANDS = sorted({text for text in CODE if text.startswith("ldp-aggregator ")})
QUERIES = sorted({text for text in CODE if re.search(r"\bldp_\w+", text)})
SAYS = {
    "ldp-aggregator backup --made-elsewhere": (1, "the store is a folder"),
    "ldp-aggregator backup /backup/today": (0, "the store is copied to"),
    "ldp-aggregator campaign close ID --seal": (0, "sealed with 5 reports"),
    "ldp-aggregator campaign close ID --seal-now": (0, "sealed with 5 reports"),
    "ldp-aggregator fsck": (0, "2 campaigns checked: nothing is wrong."),
    "ldp-aggregator fsck --take-out-damaged": (0, "2 campaigns checked: nothing is wrong."),
    "ldp-aggregator key sign": (0, "signed with"),
    "ldp-aggregator status": (0, "healthy"),
}
"""Each command of the runbook: the exit code and what is said, on a store that nothing is wrong with."""


HERE = "test_every_command_of_the_runbook_does_what_it_says_while_a_server_runs"
CARRIED_OUT = {
    "AggregatorDown": "test_no_acknowledged_report_is_lost_when_the_server_is_killed",
    "RelayDown": "test_the_wait_survives_a_restart_and_a_clock_that_is_set_back",
    "UploadsRefused": "test_a_server_that_is_well_says_what_it_does_on_one_screen",
    "GatewayKeyMissing": "test_a_gateways_key_that_was_lost_is_named_and_is_read_again_on_sighup",
    "CampaignUnsigned": "test_each_open_campaign_is_named_that_no_directory_of_the_publishers_names",
    "ClockSkew": "test_a_clock_that_is_wrong_for_a_while_costs_no_report",
    "StoreErrors": "test_a_store_that_commits_nothing_fails_every_upload_and_makes_a_server_unready_at_once",
    "CampaignFailing": "test_a_damaged_run_is_taken_out_and_the_command_says_what_that_means",
    "StoreDamaged": "test_a_damaged_run_is_taken_out_and_the_command_says_what_that_means",
    "DiskFull": HERE,
    "ArchiveBehind": "test_a_campaign_is_not_sealed_while_its_archive_has_files_that_wait_for_their_commit",
    "ConnectionsRefused": "test_at_the_limit_the_longest_idle_connection_makes_room",
    "NoBackup": HERE,
    "CertificateEnds": "test_tls_is_spoken_and_a_new_certificate_is_read_on_sighup",
    "DirectoryEnds": HERE,
}
"""The test that does what an alert's entry says, where a machine can."""
BY_HAND = {
    "ReportsStopped": "asks what was released lately",
    "UploadsFail": "leads to the codes",
    "QueueOld": "asks the kernel, or who holds a lock",
    "CommitsSlow": "asks what else writes to the disk",
    "WalLarge": "ends a reader that hangs",
    "DraftsStay": "asks why the server is killed",
    "ConflictingReports": "takes a version of an app back",
}


def test_every_alerts_entry_is_carried_out_by_a_test_or_says_why_only_people_can():
    alerts = re.findall(r"^### ([A-Z]\w+)$", RUNBOOK, re.MULTILINE)
    assert sorted(alerts) == sorted([*CARRIED_OUT, *BY_HAND])
    tests = "\n".join(path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py"))
    assert [name for name in CARRIED_OUT.values() if f"def {name}(" not in tests] == []


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
