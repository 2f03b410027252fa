"""``evaluate`` and ``train --evaluation``: an evaluation round from the command line."""

import asyncio
import csv
import io
import json
import random
import re
from dataclasses import replace
from datetime import datetime, timezone
from xml.etree import ElementTree

import pytest
from answering import answer
from cells import cell_report, count, publish
from evaluated import U, V, draft, model
from voters import people

from ldp_aggregator import NaiveBayes
from ldp_aggregator.cli import models
from ldp_aggregator.learning.series import INTERVALS_MEAN
from ldp_aggregator.store import Submission, open_store
from ldp_client.answering import perturb
from ldp_client.draw import draw_window
from ldp_protocols import Campaign, decode_upload, encode_upload

DEVICES = 1_500


@pytest.fixture
def shell(run):
    """A command; its output, or its error where it fails."""

    def call(*arguments):
        code, out, err = run(*arguments)
        return err if code else out

    return call


def create(shell, path, value=None):
    """The id of a campaign of what the file says, or is to say."""
    if value is not None:
        path.write_text(json.dumps(value))
    return shell("campaign", "create", path).strip()


def answered(data, campaign_id, seed):
    frame, labels = people(DEVICES, seed)
    answer(data, campaign_id, zip(frame.to_dict("records"), labels, strict=True), seed)


async def models_of(data, *campaign_ids):
    store = await open_store(data, None)
    found = [(await store.model(one)).document for one in campaign_ids]
    await store.close()
    return found


def shown(figure):
    if figure["value"] is None:
        return "not told"
    return f"{figure['value']:.3f} ({figure['low']:.3f} to {figure['high']:.3f})"


def test_a_study_is_learned_and_evaluated_and_its_model_published_with_what_that_tells(shell, data, tmp_path):
    learned = create(shell, tmp_path / "learn.json", draft(privacy={"epsilon": 4}))
    answered(data, learned, 1)
    told = shell("evaluate", learned, "--bins", "3", "--output", tmp_path / "how.json")
    assert "what its answers would tell" in told
    assert "area under ROC" in told
    assert len(json.loads((tmp_path / "how.json").read_text())["evaluation"]["edges"]) == 2, "between three bins"
    asked = create(shell, tmp_path / "how.json")
    answered(data, asked, 2)
    told = shell("estimates", asked, "--plot", tmp_path / "how.svg")
    assert [part for part in ("right", "recall", "area under the ROC curve") if part not in told] == []
    drawn = (tmp_path / "how.svg").read_text()
    ElementTree.fromstring(drawn)
    assert "Calibration" in drawn
    figures = json.loads(shell("estimates", asked, "--json"))["evaluated"]
    assert set(figures["recall"]) == {"a", "b"}
    lines = [line.split("  ") for line in told.splitlines()]
    rows = [[cell.strip() for cell in line if cell] for line in lines]
    for name in ("a", "b"):
        assert [name, *(shown(figures[key][name]) for key in ("classes", "recall", "precision"))] in rows
    for one in figures["roc"]:
        assert [f"{one['threshold']:g}", shown(one["false_positive"]), shown(one["true_positive"])] in rows
    for one in figures["calibration"]:
        low, high = one["claims"]
        assert [f"{low:.3f} to {high:.3f}", shown(one["share"]), shown(one["measured"])] in rows
    (tmp_path / "document.json").write_text(shell("campaign", "show", asked, "--document").rstrip("\n"))
    assert "the model" in shell("campaign", "verify", tmp_path / "document.json")
    assert "--liars is about a campaign that asks for values" in shell("estimates", asked, "--liars", "3")
    assert "--plot draws an evaluation" in shell("estimates", learned, "--plot", tmp_path / "none.svg")
    assert not (tmp_path / "none.svg").exists()
    told = shell("train", learned, "--evaluation", asked, "--output", tmp_path / "model.json")
    assert re.search(r"^Accuracy 0\.\d{3} \(0\.\d{3} to 0\.\d{3}\), told by 1,500 devices", told)
    assert "no other limit is clearly better." in told or "Its threshold is moved: " in told
    assert "Model versions 1 and 1 are published with these figures." in told
    logged = json.loads(shell("status", "--log", "--json"))
    acts = [(one["campaign"], one["outcome"]) for one in logged if one["act"] == "publish model"]
    assert sorted(acts) == sorted([(learned, "done"), (asked, "done")])
    documents = asyncio.run(models_of(data, learned, asked))
    assert documents[0] == documents[1] == (tmp_path / "model.json").read_text()
    training = json.loads(documents[0])["training"]
    assert training["campaigns"] == [learned]
    assert training["guarantee"]["epsilon"] == 4
    assert [one["campaign"] for one in training["relayed"]] == [learned, asked]
    frame, labels = people(seed=3)
    right = (NaiveBayes.from_json(documents[0]).predict(frame) == labels).mean()
    accuracy = training["evaluated"]["accuracy"]
    assert accuracy["low"] - 0.02 < right < accuracy["high"] + 0.02


def test_a_model_from_elsewhere_is_evaluated_by_the_same_round(shell, data, tmp_path):
    learned = create(shell, tmp_path / "learn.json", draft())
    (tmp_path / "elsewhere.json").write_text(json.dumps({**model(U, V), "training": {}, "projection": None}))
    output = ("--output", tmp_path / "how.json")
    shell("evaluate", learned, "--model", tmp_path / "elsewhere.json", *output)
    asked = create(shell, tmp_path / "how.json")
    answered(data, asked, 2)
    assert "are published with these figures." in shell("train", learned, "--evaluation", asked)
    (published,) = asyncio.run(models_of(data, learned))
    assert json.loads(published)["training"]["guarantee"]["epsilon"] == 1


def test_what_cannot_be_evaluated_is_told_in_one_line(shell, data, tmp_path):
    alone = create(shell, tmp_path / "alone.json", draft(study=None))
    learned = create(shell, tmp_path / "learn.json", draft())
    output = ("--output", tmp_path / "how.json")
    (tmp_path / "wrong.json").write_text("{}")
    assert "no report has been counted" in shell("evaluate", learned, *output)
    for one in (alone, learned):
        answered(data, one, 1)
    for arguments, message in (
        (("evaluate", alone, *output), "must be of one study"),
        (("evaluate", learned, *output, "--model", tmp_path / "wrong.json"), "version"),
        (("evaluate", "x" * 43, *output), "x" * 43),
        (("train", learned, "--evaluation", learned), 'an evaluation has "score"'),
    ):
        told = shell(*arguments)
        assert message in told
        assert told.count("\n") == 1
        assert not (tmp_path / "how.json").exists()
    assert "how.json" in shell("evaluate", learned, *output)
    asked = create(shell, tmp_path / "how.json")
    assert "was trained on" in shell("train", alone, "--evaluation", asked)
    assert "was trained on" in shell("train", learned, alone, "--evaluation", asked)
    more = create(shell, tmp_path / "more.json", draft(title="more"))
    answered(data, more, 2)
    shell("evaluate", learned, more, "--output", tmp_path / "both.json")
    both = create(shell, tmp_path / "both.json")
    for part in (learned, more):
        assert "was trained on" in shell("train", part, "--evaluation", both), "all of them or none"
    assert "neither is trained on" in shell("train", asked) or "no report" in shell("train", asked)


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


def test_windows_are_told_apart_smoothed_and_learned_from_as_of_now(series, run, refused, tmp_path):
    campaign_id, reports = series
    shown = run("campaign", "show", campaign_id)[1]
    assert "windows: 6 of 1 day; a device answers once in its life" in shown
    assert "window 4 of 6, from 2026-01-04 00:00 to 2026-01-05 00:00 UTC" in shown
    of_the_mean = [int(share) for share in re.findall(r"UTC +[\d,]+ +(\d+)%$", shown, re.MULTILINE)]
    assert len(of_the_mean) == OPEN
    assert 398 <= sum(of_the_mean) <= 402, "the mean is that of windows which have answers"
    assert sum(json.loads(run("campaign", "show", campaign_id, "--json")[1])["windows"]["devices"]) == reports
    told = json.loads(run("estimates", campaign_id, "--json")[1])
    assert sum(one["n"] for one in told["questions"]) == reports
    of_windows = [json.loads(run("estimates", campaign_id, "--window", w, "--json")[1]) for w in range(1, OPEN + 1)]
    assert sum(one["n"] for window in of_windows for one in window["questions"]) == reports
    rain_under_clouds = [window["questions"][1]["cells"][0]["estimate"] for window in of_windows]
    assert max(rain_under_clouds[:2]) < 0.25 < min(rain_under_clouds[2:])
    smoothed = list(csv.DictReader(io.StringIO(run("estimates", campaign_id, "--smooth", "--csv")[1])))
    assert {row["window"] for row in smoothed} == {"1", "2", "3", "4"}
    alone = [row for row in smoothed if (row["feature"], row["value"], row["class"]) == ("sky", "clouds", "yes")]
    assert [float(row["alone"]) for row in alone] == pytest.approx(rain_under_clouds)
    assert all(float(row["smoothed_low"]) <= float(row["smoothed"]) <= float(row["smoothed_high"]) for row in smoothed)
    assert float(alone[3]["filtered"]) > 0.3
    assert {row["jump_missed"] for row in smoothed if row["window"] == "1"} == {""}
    assert float(alone[2]["jump_missed"]) < float(alone[3]["jump_missed"])
    assert INTERVALS_MEAN in run("estimates", campaign_id, "--smooth", "--window", 4)[1]
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


def test_the_last_window_is_shown_and_no_later_one(data, run, refused):
    async def filled():
        store = await open_store(data, clock=lambda: datetime(2026, 1, 2, 12, tzinfo=timezone.utc))
        windows = {"from": "2026-01-01T00:00:00Z", "length": "P1D", "count": 2}
        campaign = await publish(store, windows=windows, label={"name": "label", "classes": ["yes", "no"]})
        reports = [replace(cell_report(campaign, n, cell=0), question=window) for n, window in enumerate((0, 2, 2))]
        assert (await count(store, campaign, reports)).counted == 3
        await store.close()
        return campaign.id

    campaign_id = asyncio.run(filled())
    for window, reports in ((1, 1), (2, 2)):
        told = json.loads(run("estimates", campaign_id, "--window", window, "--json")[1])
        assert sum(one["n"] for one in told["questions"]) == reports
    assert "the campaign has 2 windows" in refused("estimates", campaign_id, "--window", 3)


def test_a_campaign_that_fixes_its_releases_makes_one_when_its_estimates_are_read(data, run):
    async def counted(numbers):
        store = await open_store(data)
        privacy = {"epsilon": 1.0, "discrete": "de", "release_every": 20}
        campaign = await publish(store, privacy=privacy)
        await count(store, campaign, numbers)
        await store.close()
        return campaign.id

    def reports():
        return sum(one["n"] for one in json.loads(run("estimates", campaign_id, "--json")[1])["questions"])

    campaign_id = asyncio.run(counted(range(25)))
    assert reports() == 25
    asyncio.run(counted(range(25, 30)))
    assert reports() == 25, "the release is kept until 20 more have come"


@pytest.mark.parametrize(("error", "told"), [(None, "not told"), (0.5, "± 0.500"), (0.501, "not told")])
def test_an_error_of_more_than_half_of_everything_is_not_told(error, told):
    assert models._error(error) == told


@pytest.mark.parametrize(
    ("said", "above", "warned"),
    [({"a": 0.9991, "b": 0.0009}, True, [True, False]), ({"a": 0.999, "b": 0.001}, False, [False, True])],
)
def test_a_class_that_is_hardly_ever_said_and_a_model_that_may_be_useless_are_warned_of(capsys, said, above, warned):
    known = {"majority": 0.5, "best_feature": None, "independent": 0.75}
    models._tell_expected({**known, "says": said, "tells_something": above})
    told = capsys.readouterr().out
    assert ("Warning: it never says b.\n" in told, "may be no better than guessing" in told) == tuple(warned)
    assert "never says a" not in told


def test_a_campaign_without_windows_has_none_to_show(weather, refused):
    campaign_id = weather()
    assert "no windows" in refused("estimates", campaign_id, "--window", 1)
    assert "no windows" in refused("estimates", campaign_id, "--smooth")
