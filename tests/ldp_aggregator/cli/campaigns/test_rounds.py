"""``evaluate`` and ``train --evaluation``: an evaluation round from the command line."""

import asyncio
import json
import re
from xml.etree import ElementTree

import pytest
from answering import answer
from evaluated import U, V, draft, model
from voters import people

from ldp_aggregator import NaiveBayes
from ldp_aggregator.store import open_store
from protocols import Campaign

DEVICES = 1_500


@pytest.fixture
def shell(run):
    """A command; its output, or its error where it fails."""

    def call(*arguments):
        code, out, err = run(*arguments)
        return err if code else out

    return call


def create(shell, tmp_path, name, value):
    (tmp_path / name).write_text(json.dumps(value))
    return publish(shell, tmp_path / name)


def publish(shell, path):
    """The id of a draft, under a title whose id a shell does not take for an option."""
    value = json.loads(path.read_text())
    while Campaign.compile(value).id.startswith("-"):
        value["title"] += "."
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


def test_a_study_is_learned_and_evaluated_and_its_model_published_with_what_that_tells(shell, data, tmp_path):
    learned = create(shell, tmp_path, "learn.json", draft(privacy={"epsilon": 4}))
    answered(data, learned, 1)
    told = shell("evaluate", learned, "--output", tmp_path / "how.json")
    assert "what its answers would tell" in told
    assert "area under ROC" in told
    asked = publish(shell, tmp_path / "how.json")
    answered(data, asked, 2)
    told = shell("train", learned, "--evaluation", asked, "--output", tmp_path / "model.json")
    assert re.search(r"^accuracy 0\.\d{3} \(0\.\d{3} to 0\.\d{3}\), told by 1,500 devices", told)
    assert "the threshold " in told
    assert "model version 1 and 1 is published with these figures" in told
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


def test_what_an_evaluation_tells_is_printed_and_drawn(shell, data, tmp_path):
    learned = create(shell, tmp_path, "learn.json", draft())
    answered(data, learned, 1)
    shell("evaluate", learned, "--bins", "3", "--output", tmp_path / "how.json")
    asked = publish(shell, tmp_path / "how.json")
    answered(data, asked, 2)
    told = shell("estimates", asked, "--plot", tmp_path / "how.svg")
    assert "right" in told
    assert "recall" in told
    assert "area under the ROC curve" in told
    drawn = (tmp_path / "how.svg").read_text()
    ElementTree.fromstring(drawn)
    assert "Calibration" in drawn
    figures = json.loads(shell("estimates", asked, "--json"))["evaluated"]
    assert set(figures["recall"]) == {"a", "b"}
    (tmp_path / "document.json").write_text(shell("campaign", "show", asked, "--document").rstrip("\n"))
    assert "the model" in shell("campaign", "verify", tmp_path / "document.json")
    assert "--plot draws an evaluation" in shell("estimates", learned, "--plot", tmp_path / "none.svg")
    assert not (tmp_path / "none.svg").exists()


def test_a_model_from_elsewhere_is_evaluated_by_the_same_round(shell, data, tmp_path):
    learned = create(shell, tmp_path, "learn.json", draft())
    (tmp_path / "elsewhere.json").write_text(json.dumps({**model(U, V), "training": {}, "projection": None}))
    output = ("--output", tmp_path / "how.json")
    shell("evaluate", learned, "--model", tmp_path / "elsewhere.json", *output)
    asked = publish(shell, tmp_path / "how.json")
    answered(data, asked, 2)
    assert "is published with these figures" in shell("train", learned, "--evaluation", asked)
    (published,) = asyncio.run(models_of(data, learned))
    assert json.loads(published)["training"]["guarantee"]["epsilon"] == 1


def test_what_cannot_be_evaluated_is_told_in_one_line(shell, data, tmp_path):
    alone = create(shell, tmp_path, "alone.json", draft(study=None))
    learned = create(shell, tmp_path, "learn.json", draft())
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
    asked = publish(shell, tmp_path / "how.json")
    assert "was trained on" in shell("train", alone, "--evaluation", asked)
    assert "neither is trained on" in shell("train", asked) or "no report" in shell("train", asked)
