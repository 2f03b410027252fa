"""A campaign of values in their order, from its draft to its model and to the rounds that follow."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from ldp_aggregator import NaiveBayes, train
from ldp_aggregator.learning.evaluation import evaluation_draft
from ldp_aggregator.service.publishing import compile_draft
from ldp_client.classifier import Classifier
from protocols import Campaign
from simulations import simulate

TOML = """\
version = 1
title = "t"
study = "s"

[label]
name = "y"
classes = ["yes", "no"]

[[features]]
name = "age"
kind = "categorical"
values = ["young", "medium", "old"]
ordered = true

[[features]]
name = "size"
kind = "continuous"
low = 0
high = 9
bins = 3

[privacy]
epsilon = 4.0
"""


@pytest.fixture(scope="module")
def campaign() -> Campaign:
    return compile_draft(TOML.encode(), toml=True)


@pytest.fixture(scope="module")
def pairs(campaign):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"age": rng.choice(["young", "medium", "old"], 2000), "size": rng.uniform(0, 9, 2000)})
    labels = np.where((frame["age"] == "old") ^ (rng.random(2000) < 0.1), "yes", "no")
    return [(campaign, simulate(campaign, frame, labels, rng=7))]


def without_order(campaign):
    draft = json.loads(campaign.document)
    del draft["questions"], draft["features"][0]["ordered"]
    return Campaign.compile(draft)


def test_a_draft_in_toml_says_it_too(campaign):
    assert [feature.ordered for feature in campaign.features] == [True, True]


def test_a_model_does_not_say_it_and_is_read_by_servers_and_devices(pairs):
    text = train(pairs).to_json()
    assert "ordered" not in json.dumps(json.loads(text)["features"])
    assert NaiveBayes.from_json(text).to_json() == text
    assert Classifier.from_json(text).predict({"age": "old"}) == "yes"


def test_a_model_is_of_campaigns_that_say_the_same(pairs):
    ((campaign, tally),) = pairs
    with pytest.raises(ValueError, match="do not have the same label and features"):
        train([(campaign, tally), (without_order(campaign), tally)])


def test_an_evaluation_round_says_it_again_and_holds_its_model(pairs):
    following = Campaign.compile(evaluation_draft([pairs[0][0]], train(pairs).model_))
    assert [feature.ordered for feature in following.features] == [True, True]
    assert following.asks == "score"
