"""Training beside a server: the same model, in a process of its own that may take so much memory."""

import asyncio
import json
import os

import numpy as np
import pytest
from drafts import draft, text

from ldp_aggregator import Tally
from ldp_aggregator.counting.tally import Arrivals
from ldp_aggregator.service import publishing
from ldp_aggregator.service.publishing import UntrainableError, trained
from ldp_protocols import Campaign


def answers_to(*features, classes=2):
    """A campaign with a tally, and how its reports came."""
    label = {"name": "y", "classes": [f"c{i}" for i in range(classes)]}
    campaign = Campaign.compile(draft(*features, label=label))
    tally, rng = Tally(campaign), np.random.default_rng(1)
    for question in campaign.questions:
        tally.add(question.index, 5_000, rng.binomial(5_000, 0.3, question.domain_size))
    return [(campaign, tally)], [Arrivals(5_000 * len(campaign.questions))]


@pytest.fixture
def counted():
    return answers_to(text("colour", "red", "blue"), text("size", "s", "m", "l"))


def test_a_training_apart_gives_the_same_bytes_as_one_in_this_process(counted):
    assert asyncio.run(trained(*counted, apart=True)) == asyncio.run(trained(*counted))


@pytest.mark.parametrize(
    ("values", "classes", "features", "most"),
    [
        (1 << 14, 2, 1, 1 << 28),
        (100, 2, 50, 1 << 30),
        pytest.param(64, 1 << 10, 1, 1 << 30, marks=pytest.mark.long),
    ],
)
def test_many_cells_are_trained_on_in_little_memory(values, classes, features, most, monkeypatch):
    """Half a minute where classes are many, seconds elsewhere; a basis of all cells would take 17 GiB."""
    monkeypatch.setattr(publishing, "TRAINING_BYTES", most)
    asked = [text(f"word{i}", *(f"w{j}" for j in range(values)), missing=False) for i in range(features)]
    model = json.loads(asyncio.run(trained(*answers_to(*asked, classes=classes), apart=True)))
    assert len(model["features"]) == features


@pytest.mark.skipif(not publishing._HELD.exists(), reason="this system does not tell what a process holds")
def test_a_training_that_takes_too_much_ends_in_a_sentence_and_the_server_goes_on(monkeypatch):
    counted = answers_to(text("word", *(f"w{i}" for i in range(1 << 14))))
    monkeypatch.setattr(publishing, "TRAINING_BYTES", 20 << 20)

    async def beside() -> int:
        training, turns = asyncio.create_task(trained(*counted, apart=True)), 0
        while not training.done():
            await asyncio.sleep(0.01)
            turns += 1
        with pytest.raises(UntrainableError, match="took more than 20 MiB"):
            await training
        return turns

    assert asyncio.run(beside()) > 10


def test_a_training_that_is_killed_ends_in_a_sentence(counted, monkeypatch):
    monkeypatch.setattr(publishing, "_train", _kill)
    with pytest.raises(UntrainableError, match="training was ended"):
        asyncio.run(trained(*counted, apart=True))


def _kill(*_: object) -> None:
    os.kill(os.getpid(), 9)
