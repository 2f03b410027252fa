"""Metrics: what happened is counted, and nothing that could identify is a label; alerts are of what there is."""

import asyncio
import json
import re
from pathlib import Path

import promql_parser
import pytest
import yaml
from cells import cell_campaign
from raw_http import exchange, problem_of

from ldp_aggregator.server import housekeeping
from ldp_aggregator.server.metrics import OBSERVED, Metrics
from ldp_aggregator.server.problems import PROBLEMS, RETRY_SECONDS, retry_later
from ldp_aggregator.service.settings import Settings


async def scrape(server, holds=bool):
    """Text and values of the metrics once this holds."""
    for _ in range(500):
        text = await server.metrics()
        values = dict(re.findall(r"^(\S+(?:\{.*\})?) (\S+)$", text, re.MULTILINE))
        if holds(values):
            return text, values
        await asyncio.sleep(0.01)
    pytest.fail(text)


async def test_what_happened_is_counted(server):
    campaign = await server.publish()
    await server.upload(campaign, range(4))
    await server.upload(campaign, [0, (9, 64)])
    assert (await server.ask("POST", f"/admin/v1/campaigns/{campaign.id}/close", "admin")).status == 200
    assert (await server.upload(campaign, b"garbage"))[0] == 400
    assert problem_of(await exchange(server, b"garbage\r\n\r\n")) == (400, "malformed-request")
    _, values = await scrape(server)
    route = 'method="POST",route="/v1/campaigns/{id}/reports"'
    expected = {
        'ldp_reports_total{outcome="counted"}': 4,
        'ldp_reports_total{outcome="duplicate"}': 1,
        'ldp_reports_total{outcome="index-out-of-range"}': 1,
        f'ldp_requests_total{{{route},status="200"}}': 2,
        f"ldp_request_seconds_count{{{route}}}": 3,
        "ldp_commit_seconds_count": 2,
        "ldp_group_reports_sum": 6,
        'ldp_mutations_total{kind="campaign-closed"}': 1,
        "ldp_store_errors_total": 0,
        'ldp_refusals_total{code="malformed-request"}': 1,
        "ldp_queue_age_seconds": 0,
    }
    assert {name: float(values[name]) for name in expected} == expected
    for listener in ("public", "operations"):
        assert float(values[f'ldp_connections{{listener="{listener}"}}']) >= 1
    assert float(values["ldp_queue_bytes"]) >= 0
    assert any(line.startswith("ldp_build_info{") and 'python="3' in line for line in values)
    assert float(values["process_resident_memory_bytes"]) > 0


async def test_no_label_names_a_path_or_a_client_and_campaigns_only_those_that_are_open(monkeypatch, serving):
    monkeypatch.setattr(housekeeping, "DUE_SECONDS", 0.02)
    async with serving() as server:
        campaign, unknown = await server.publish(), cell_campaign(title="Never published")
        await server.upload(campaign, [1])
        await server.upload(unknown, [1])
        for path in ("/secret-path", f"/v1/campaigns/{campaign.id}", "/v1/campaigns/nonsense"):
            await server.ask("GET", server.public + path)
        await server.ask("BREW", server.public + "/coffee")
        ids = f'ldp_campaign_ids{{campaign="{campaign.id}"}}'
        text, values = await scrape(server, lambda values: values.get(ids) == "1.0")
        for hidden in (unknown.id, "secret-path", "nonsense", "127.0.0.1", "BREW", "coffee"):
            assert hidden not in text
        assert [line for line in values if campaign.id in line] == [ids]
        await server.store.close_campaign(campaign.id)
        await scrape(server, lambda values: not any(campaign.id in line for line in values))


def test_the_time_to_come_back_is_drawn():
    drawn = {retry_later("overloaded").headers["Retry-After"] for _ in range(400)}
    # Missing one of eight in 400 draws: 8 * (7/8)^400 < 1e-21.
    assert drawn == {str(seconds) for seconds in range(RETRY_SECONDS[0], RETRY_SECONDS[1] + 1)}


ROOT = Path(__file__).resolve().parents[3]
RULES = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text(encoding="utf-8"))
ALERTS = {rule["alert"]: rule for group in RULES["groups"] for rule in group["rules"]}
FIRED = yaml.safe_load((ROOT / "deploy/prometheus/alerts.test.yaml").read_text(encoding="utf-8"))["tests"]
SCRAPED = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text(encoding="utf-8"))["scrape_configs"]
PANELS = json.loads((ROOT / "deploy/grafana/ldp-aggregator.json").read_text(encoding="utf-8"))["panels"]
SECTIONS = re.findall(r"^### (\S+)$", (ROOT / "docs/runbook.md").read_text(encoding="utf-8"), re.MULTILINE)
OF_PROMETHEUS = {"up"}


def known_metrics():
    metrics = Metrics()
    metrics.gauges.observed = {(name, "x"): 1.0 for name in OBSERVED}
    found = set(OF_PROMETHEUS)
    for family in metrics.registry.collect():
        suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}.get(family.type, ("",))
        found |= {family.name + suffix for suffix in suffixes}
    return found


def named(expression):
    """The metrics of an expression. Raises ValueError for what is no PromQL."""
    promql_parser.parse(expression)
    bare = re.sub(r'"[^"]*"|\{[^}]*\}|\[[^\]]*\]|by \([^)]*\)', "", expression)
    return set(re.findall(r"\b(?:ldp|process)_\w+\b|\bup\b", bare))


EXPRESSIONS = [(name, rule["expr"]) for name, rule in ALERTS.items()]
EXPRESSIONS += [(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]]


@pytest.mark.parametrize("expression", [found for _, found in EXPRESSIONS], ids=[name for name, _ in EXPRESSIONS])
def test_an_alert_or_a_panel_is_promql_about_metrics_that_exist(expression):
    assert set() < named(expression) <= known_metrics()


def test_every_alert_has_its_section_a_severity_and_a_summary_and_its_labels_are_codes_that_exist():
    for name, rule in ALERTS.items():
        assert rule["annotations"]["runbook"] == f"docs/runbook.md#{name.lower()}"
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["annotations"]["summary"]
        codes = [code for codes in re.findall(r'code=~?"([a-z|-]+)"', rule["expr"]) for code in codes.split("|")]
        assert set(codes) <= {*PROBLEMS, "conflicting-report"}
        assert set(re.findall(r'job=~?"([a-z|-]+)"', rule["expr"])) <= {"ldp-aggregator", "ldp-relay|ldp-issuer"}
    codes = [code for code, kind in PROBLEMS.items() if kind.status >= 500]
    assert sorted([*ALERTS, *codes]) == sorted(SECTIONS)


def test_every_alert_is_fired_by_a_test_of_its_rule_that_sees_it_quiet_before():
    """``make manifests`` has promtool run them."""
    ends = {}
    for one in FIRED:
        quiet, fires = one["alert_rule_test"]
        assert quiet["alertname"] == fires["alertname"]
        assert one["name"].startswith(f"{fires['alertname']}, ")
        assert not quiet.get("exp_alerts")
        (told,) = fires["exp_alerts"]
        ends[fires["alertname"]] = told["exp_annotations"]["runbook"]
    assert ends == {name: rule["annotations"]["runbook"] for name, rule in ALERTS.items()}


def test_what_is_scraped_has_the_jobs_names_that_alerts_go_by_and_the_ports_of_the_settings():
    targets = {job["job_name"]: job["static_configs"][0]["targets"] for job in SCRAPED}
    operations = Settings.model_fields["listen_operations"].default
    assert targets == {
        "ldp-aggregator": [operations],
        "ldp-relay": ["127.0.0.1:8092"],
        "ldp-issuer": ["127.0.0.1:8093"],
    }
