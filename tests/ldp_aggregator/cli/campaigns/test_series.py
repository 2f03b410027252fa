"""``estimates --window``, ``--smooth`` and ``train --window now`` of a campaign with windows."""

import asyncio
import csv
import io
import json
import random
from datetime import datetime, timezone

import pytest

from ldp_aggregator.store import Submission, open_store
from ldp_client.answering import perturb
from ldp_client.draw import draw_window
from protocols import Campaign, decode_upload, encode_upload

WINDOWS = {"from": "2026-01-01T00:00:00Z", "length": "P1D", "count": 6}
PER_WINDOW = 400
OPEN = 4
"""Windows that have answers; in the last of them rain has moved from the blue sky to the clouds."""


@pytest.fixture
def series(weather, data, run, tmp_path):
    """The id of a series of which four windows are over: always rain under clouds later, under blue before."""
    weather()
    text = (tmp_path / "weather.json").read_text()
    (tmp_path / "weather.json").write_text(json.dumps({**json.loads(text), "title": "Series", "windows": WINDOWS}))
    campaign_id = run("campaign", "create", tmp_path / "weather.json")[1].strip()

    async def count():
        store = await open_store(data, clock=lambda: datetime(2026, 1, 5, tzinfo=timezone.utc))
        campaign = Campaign.parse(await store.document(campaign_id))
        uploads = []
        for number in range(OPEN * PER_WINDOW * 2):
            secret = random.Random(number).randbytes(32)
            window = draw_window(campaign, secret)
            if window < OPEN:
                label = random.Random(-number - 1).choice(["yes", "no"])
                sky = "clouds" if (label == "yes") == (window >= 2) else "blue"
                uploads.append(encode_upload(perturb(campaign, {"sky": sky}, label, secret=secret), campaign))
        await store.count([Submission(campaign, decode_upload(upload, campaign)) for upload in uploads])
        await store.close()
        return len(uploads)

    return campaign_id, asyncio.run(count())


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_windows_are_told_apart_smoothed_and_learned_from_as_of_now(series, run, refused, tmp_path):
    campaign_id, reports = series
    shown = run("campaign", "show", campaign_id)[1]
    assert "windows: 6 of 1 day; a device answers once in its life" in shown
    assert "window 4 of 6, from 2026-01-04 00:00 to 2026-01-05 00:00 UTC" in shown
    assert sum(json.loads(run("campaign", "show", campaign_id, "--json")[1])["windows"]["devices"]) == reports
    told = json.loads(run("estimates", campaign_id, "--json")[1])
    assert sum(one["n"] for one in told["questions"]) == reports
    of_windows = [json.loads(run("estimates", campaign_id, "--window", w, "--json")[1]) for w in range(1, OPEN + 1)]
    assert sum(one["n"] for window in of_windows for one in window["questions"]) == reports
    rain_under_clouds = [window["questions"][1]["cells"][0]["estimate"] for window in of_windows]
    assert max(rain_under_clouds[:2]) < 0.25 < min(rain_under_clouds[2:])
    smoothed = rows(run("estimates", campaign_id, "--smooth", "--csv")[1])
    assert {row["window"] for row in smoothed} == {"1", "2", "3", "4"}
    alone = [row for row in smoothed if (row["feature"], row["value"], row["class"]) == ("sky", "clouds", "yes")]
    assert [float(row["alone"]) for row in alone] == pytest.approx(rain_under_clouds)
    assert all(float(row["smoothed_low"]) <= float(row["smoothed"]) <= float(row["smoothed_high"]) for row in smoothed)
    assert float(alone[3]["filtered"]) > 0.3
    assert "window" in run("estimates", campaign_id, "--smooth", "--window", 4)[1]
    assert "no answers" in refused("estimates", campaign_id, "--window", 5)
    assert "6 windows" in refused("estimates", campaign_id, "--window", 7)
    models = {}
    for window in ("all", "now"):
        code, _, problem = run("train", campaign_id, "--anyway", "--window", window, "--output", tmp_path / "m.json")
        assert code == 0, problem
        models[window] = json.loads((tmp_path / "m.json").read_text())
    clouds = {window: model["features"][0]["likelihood"][0] for window, model in models.items()}
    assert clouds["now"][0] > 0.8 > clouds["all"][0]
    assert models["now"]["training"]["window"] == "now"
    assert models["now"]["training"]["reports"] == reports


def test_a_campaign_without_windows_has_none_to_show(weather, refused):
    campaign_id = weather()
    assert "no windows" in refused("estimates", campaign_id, "--window", 1)
    assert "no windows" in refused("estimates", campaign_id, "--smooth")
