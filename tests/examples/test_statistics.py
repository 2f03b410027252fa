"""Two schemas of free software, asked by a real aggregator: opt-in, what it shows, off switch, and results."""

import json
import re
import tomllib

import numpy as np
import pandas as pd
import pytest
from installing import REPOSITORY
from served import shell

from ldp_protocols import Campaign
from ldp_simulations.columns import Columns
from ldp_simulations.experiment import make_token, temporary_aggregator
from ldp_simulations.fidelities import relayed_upload

pytestmark = pytest.mark.usefixtures("forked_programs")

FOLDER = REPOSITORY / "examples" / "statistics"
RECORDS = {
    "synchroniser": {"platform": "linux", "folders": 7, "watches files": True, "relays": "no", "memory used, MiB": 180},
    "home_hub": {"installed as": "image", "uses zigbee": "yes", "automations": 31, "database, GiB": 1.5},
}


@pytest.fixture(scope="module")
def aggregator():
    with temporary_aggregator() as running:
        yield running


def people(campaign: Campaign, count: int) -> pd.DataFrame:
    """Installations that are drawn evenly, but for the first value of everything, which half of them have."""
    rng = np.random.default_rng(1)
    half = rng.random((len(campaign.features), count)) < 0.5
    columns = {}
    for feature, first in zip(campaign.features, half, strict=True):
        if feature.number:
            columns[feature.name] = np.where(first, feature.low, rng.uniform(feature.low, feature.high, count))
        else:
            columns[feature.name] = np.where(first, feature.names[0], rng.choice(feature.names, count))
    return pd.DataFrame(columns)


@pytest.mark.parametrize("name", RECORDS)
def test_a_published_schema_is_asked_without_a_word_changed_in_the_client_and_shown_on_a_page(
    aggregator, name, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    campaign = aggregator.publish(tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8")))
    assert campaign.asks == "statistics"
    (tmp_path / "record.json").write_text(json.dumps(RECORDS[name]), encoding="utf-8")

    def opt_in(wish: str) -> str:
        return shell("python", FOLDER / "opt_in.py", aggregator.url, campaign.id, "record.json", wish)

    shown = opt_in("show")
    assert campaign.title in shown
    assert "privacy loss is at most epsilon 2" in shown
    assert all(f"{feature.name}" in shown for feature in campaign.features)
    assert not (tmp_path / "usage.db").exists() or "reports" not in opt_in("export")
    assert opt_in("on") == "delivered"
    assert opt_in("on") == "delivered", "it answers once, ever"
    assert campaign.id in opt_in("export")
    assert "nothing is asked or sent" in opt_in("off")

    rows = np.arange(20_000)
    columns = Columns.of(campaign, people(campaign, len(rows)), np.full(len(rows), None))
    assert aggregator.relay(campaign, relayed_upload(columns, rows, np.random.default_rng(2))) == 0
    token = make_token(aggregator.data, "collector")
    page = shell("python", FOLDER / "results_page.py", aggregator.url, campaign.id, token)
    assert page.count("<h2>") == len(campaign.features) + 2 * (name == "synchroniser") + (name == "home_hub")
    assert "model" not in page
    assert sum(int(found.replace(",", "")) for found in re.findall(r"<p>([\d,]+) answers", page)) > 19_000
