"""The page of federations: its table of losses is computed, its words are those that both sides print."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path

import pytest

from ldp_aggregator.flower.masked_sum.agreement import WORDS
from ldp_aggregator.flower.messages import CODES
from ldp_aggregator.flower.settings import NODE_KEYS
from ldp_aggregator.trainers.federation.missing_noise import loss_of_row
from ldp_aggregator.trainers.noise.sensitivities import ADD_REMOVE
from ldp_aggregator.trainers.schemas import Schema
from ldp_aggregator.trainers.statistics import plan_noise

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "federation.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "flower"


@pytest.fixture(scope="module")
def plans():
    names = {"__name__": "campaign"}
    exec((EXAMPLE / "hospitals" / "campaign.py").read_text(encoding="utf-8"), names)
    campaign = names["CAMPAIGN"]
    return plan_noise(Schema.of_campaign(campaign), campaign.privacy.epsilon, ADD_REMOVE)


def test_the_page_says_of_the_masks_what_the_programs_print():
    assert WORDS in PAGE
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE):
        for sentence in re.findall(r"[^.|\n]*secure aggregation[^.|\n]*", section):
            assert "no secure aggregation" in sentence


def test_the_true_epsilon_of_every_row_of_the_table_is_computed(plans):
    head = re.search(r"^\| N \| M \| k = (1) \|(.*)\|$", PAGE, re.MULTILINE)
    missing = [int(head.group(1)), *map(int, head.group(2).split("|"))]
    rows = re.findall(r"^\| (\d+) \| (\d+) \|(.*)\|$", PAGE[head.end() :], re.MULTILINE)
    assert len(rows) == 3
    for nodes, honest, cells in rows:
        for k, cell in zip(missing, cells.split("|"), strict=True):
            if k >= int(nodes):
                assert cell.strip() == "-"
                continue
            loss = loss_of_row(plans, min(1.0, (int(nodes) - k) / int(honest)))
            assert cell.strip() == ("unbounded" if math.isinf(loss) else f"{loss:.2f}")


def test_all_of_the_noise_costs_what_the_campaign_says_and_less_costs_more(plans):
    assert loss_of_row(plans, 1.0) == pytest.approx(1.0, abs=1e-6)
    losses = [loss_of_row(plans, part) for part in (1.0, 0.9, 0.7, 0.55)]
    assert losses == sorted(losses)
    assert math.isinf(loss_of_row(plans, 0.5))


def test_the_readme_names_every_setting_of_a_node():
    readme = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    for key in NODE_KEYS:
        assert f"{key}=" in readme


def test_the_codes_of_refusals_tell_no_value():
    assert all(not re.search(r"[{}%]", text) for text in CODES.values())


def test_the_made_up_tables_are_of_the_campaign(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(EXAMPLE))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    try:
        from hospitals.made_up import CAMPAIGN, simulated_node

        from ldp_aggregator.flower.answering import answer

        settings = simulated_node(1, 2)
        assert settings.table.is_relative_to(tmp_path)
        assert set(answer(settings, {"campaign": CAMPAIGN.document})) == {"share"}
    finally:
        for name in [name for name in sys.modules if name.startswith("hospitals")]:
            del sys.modules[name]
