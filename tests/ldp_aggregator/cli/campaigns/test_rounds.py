"""``evaluate``, ``train --evaluation`` and ``second-round``: the rounds of a study from the command line."""

from __future__ import annotations

import asyncio
import json

import pytest
from evaluated import draft
from voters import people

from ldp_aggregator import NaiveBayes
from ldp_aggregator.cli.program import run
from ldp_aggregator.learning.rounds.candidates import DEFAULT
from ldp_aggregator.store import Submission, open_store
from ldp_client.answering import perturb
from protocols import Campaign, decode_upload, encode_upload
from simulations.fidelities.coins import SeededCoins

DEVICES = 1_500
FIRST = DEFAULT[0]


@pytest.fixture
def shell(tmp_path, capsys):
    """A command on one store; its output, or its error where it fails."""

    def call(*arguments: str) -> str:
        code = run([*arguments, "--data", str(tmp_path / "data")])
        told = capsys.readouterr()
        return told.err if code else told.out

    return call


def create(shell, tmp_path, name, value) -> str:
    path = tmp_path / name
    path.write_text(json.dumps(value))
    return publish(shell, path)


def publish(shell, path) -> str:
    """The id of a draft, under a title whose id a shell does not take for an option."""
    value = json.loads(path.read_text())
    while Campaign.compile(value).id.startswith("-"):
        value["title"] += "."
    path.write_text(json.dumps(value))
    return shell("campaign", "create", str(path)).strip()


async def answer(data, campaign_id: str, seed: int) -> None:
    store = await open_store(data, None)
    campaign = Campaign.parse(await store.document(campaign_id))
    coins, (frame, labels) = SeededCoins(seed), people(DEVICES, seed)
    uploads = []
    for record, label in zip(frame.to_dict("records"), labels, strict=True):
        reports = perturb(campaign, record, label, coins=coins)
        uploads.append(Submission(campaign, decode_upload(encode_upload(reports), campaign)))
    await store.count(uploads)
    await store.close()


async def models_of(data, *campaign_ids: str) -> list[str]:
    store = await open_store(data, None)
    found = [(await store.model(one)).document for one in campaign_ids]
    await store.close()
    return found


def test_a_study_is_learned_evaluated_and_its_winner_published_with_its_accuracy(shell, tmp_path):
    data = tmp_path / "data"
    learned = create(shell, tmp_path, "learn.json", draft(privacy={"epsilon": 4}))
    asyncio.run(answer(data, learned, 1))
    told = shell("evaluate", learned, "--output", str(tmp_path / "which.json"))
    assert f"its candidates are {FIRST}" in told
    asked = publish(shell, tmp_path / "which.json")
    asyncio.run(answer(data, asked, 2))
    told = shell("train", learned, "--evaluation", asked, "--output", str(tmp_path / "model.json"))
    assert f"voters a candidate are fewer than 1,000: {FIRST}, the first, is kept" in told
    assert f"model version 1 and 1, {FIRST}, is published with its accuracy:" in told
    logged = json.loads(shell("log", "--json"))
    acts = [(one["campaign"], one["outcome"]) for one in logged if one["act"] == "publish model"]
    assert sorted(acts) == sorted([(learned, "done"), (asked, "done")])
    documents = asyncio.run(models_of(data, learned, asked))
    assert documents[0] == documents[1] == (tmp_path / "model.json").read_text()
    training = json.loads(documents[0])["training"]
    assert training["campaigns"] == [learned]
    assert training["evaluation"]["low"] < training["evaluation"]["accuracy"] < training["evaluation"]["high"]
    assert training["guarantee"]["epsilon"] == 4
    assert [one["campaign"] for one in training["relayed"]] == [learned, asked]
    frame, labels = people(seed=3)
    right = (NaiveBayes.from_json(documents[0]).predict(frame) == labels).mean()
    assert training["evaluation"]["low"] - 0.02 < right < training["evaluation"]["high"] + 0.02


def test_the_estimates_of_an_evaluation_are_printed(shell, tmp_path, capsys):
    learned = create(shell, tmp_path, "learn.json", draft())
    asyncio.run(answer(tmp_path / "data", learned, 1))
    shell("evaluate", learned, "--candidates", "norm_sub, prior", "--output", str(tmp_path / "which.json"))
    asked = publish(shell, tmp_path / "which.json")
    told = shell("estimates", asked)
    assert "norm_sub is right" in told
    assert "P(class)" not in told
    (tmp_path / "document.json").write_text(shell("campaign", "show", asked, "--document").rstrip("\n"))
    assert run(["campaign", "verify", str(tmp_path / "document.json")]) == 0
    assert "whether a candidate is right" in capsys.readouterr().out
    assert '"value": "prior is right"' in shell("estimates", asked, "--json")


def test_what_cannot_be_evaluated_is_told_in_one_line(shell, tmp_path):
    alone = create(shell, tmp_path, "alone.json", draft(study=None))
    learned = create(shell, tmp_path, "learn.json", draft())
    output = ("--output", str(tmp_path / "which.json"))
    assert "no report has been counted" in shell("evaluate", learned, *output)
    for one in (alone, learned):
        asyncio.run(answer(tmp_path / "data", one, 1))
    for arguments, message in (
        (("evaluate", alone, *output), "must be of one study"),
        (("evaluate", learned, *output, "--candidates", "best"), "'best' is no candidate"),
        (("evaluate", learned, *output, "--candidates", "prior"), "2 to 8 candidates, not 1"),
        (("evaluate", "x" * 43, *output), "x" * 43),
        (("train", learned, "--evaluation", learned), 'an evaluation has "score"'),
    ):
        told = shell(*arguments)
        assert message in told
        assert told.count("\n") == 1
        assert not (tmp_path / "which.json").exists()
    assert "which.json" in shell("evaluate", learned, *output)
    asked = publish(shell, tmp_path / "which.json")
    assert "was trained on" in shell("train", alone, "--evaluation", asked)
    assert "neither is trained on" in shell("train", asked) or "no report" in shell("train", asked)


def test_a_second_round_is_drafted_answered_and_trained_with_the_first(shell, tmp_path):
    data = tmp_path / "data"
    first = create(shell, tmp_path, "learn.json", draft(privacy={"epsilon": 4}))
    assert "no report has been counted" in shell("second-round", first, "--output", str(tmp_path / "next.json"))
    asyncio.run(answer(data, first, 1))
    told = shell("second-round", first, "--output", str(tmp_path / "next.json"), "--title", "Once more")
    assert "train takes both rounds' ids" in told
    assert json.loads((tmp_path / "next.json").read_text())["title"] == "Once more"
    second = publish(shell, tmp_path / "next.json")
    asyncio.run(answer(data, second, 2))
    assert f"from {2 * DEVICES} reports is published" in shell("train", first, second)
    training = json.loads(asyncio.run(models_of(data, second))[0])["training"]
    assert training["campaigns"] == [first, second]
    assert training["guarantee"]["epsilon"] == 4
    alone = create(shell, tmp_path, "alone.json", draft(study=None))
    asyncio.run(answer(data, alone, 3))
    assert "must be of one study" in shell("second-round", alone, "--output", str(tmp_path / "never.json"))
    assert not (tmp_path / "never.json").exists()
