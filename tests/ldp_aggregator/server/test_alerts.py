"""Alert rules, dashboard and runbook: they name what is there, and every alert and 5xx code has its section."""

from __future__ import annotations

import json
import re
from pathlib import Path

import promql_parser
import pytest
import yaml

from ldp_aggregator.server.metrics import OBSERVED, Metrics
from ldp_aggregator.server.problems import PROBLEMS

ROOT = Path(__file__).resolve().parents[3]
RULES = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text(encoding="utf-8"))
ALERTS = {rule["alert"]: rule for group in RULES["groups"] for rule in group["rules"]}
PANELS = json.loads((ROOT / "deploy/grafana/ldp-aggregator.json").read_text(encoding="utf-8"))["panels"]
SECTIONS = re.findall(r"^### (\S+)$", (ROOT / "docs/runbook.md").read_text(encoding="utf-8"), re.MULTILINE)
OF_PROMETHEUS = {"up"}


def known_metrics():
    metrics = Metrics()
    metrics.told.observed = {(name, "x"): 1.0 for name in OBSERVED}
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


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_is_promql_about_metrics_that_exist(name):
    metrics = named(ALERTS[name]["expr"])
    assert metrics
    assert metrics <= known_metrics()


def test_what_is_no_promql_is_found():
    with pytest.raises(ValueError, match=r"\S"):
        named("rate(ldp_requests_total[5m]")


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_is_promql_about_metrics_that_exist(panel):
    for target in panel["targets"]:
        metrics = named(target["expr"])
        assert metrics
        assert metrics <= known_metrics()


def test_every_alert_has_its_section_a_severity_and_a_summary():
    for name, rule in ALERTS.items():
        assert rule["annotations"]["runbook"] == f"docs/runbook.md#{name.lower()}"
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["annotations"]["summary"]
    codes = [code for code, kind in PROBLEMS.items() if kind.status >= 500]
    assert sorted([*ALERTS, *codes]) == sorted(SECTIONS)


def test_labels_of_rules_are_codes_and_routes_that_exist():
    text = json.dumps([rule["expr"] for rule in ALERTS.values()])
    for code in re.findall(r'code=\\"([a-z-]+)\\"', text):
        assert code in PROBLEMS or code == "conflicting-report"
