"""The audit's own classifier of an evaluation round: its votes are those of the device, or unknown."""

from __future__ import annotations

import json

import numpy as np
import pytest
from evaluated import FEATURES, U, V, draft, model

from ldp_aggregator.audit.asking.black_box import Person
from ldp_aggregator.audit.searching.votes import vote_of
from ldp_client import Classifier
from protocols import Campaign


def document_of(*models):
    candidates = [{"name": str(n), "model": one} for n, one in enumerate(models)]
    return json.loads(Campaign.compile(draft(asks="score", candidates=candidates)).document)


def test_a_weight_decides_what_a_candidate_says():
    """V speaks for b, the prior for a: with all of its weight V wins, with a tenth of it the prior."""
    document = document_of(model(V, prior=(0.55, 0.45)), model({**V, "weight": 0.1}, prior=(0.55, 0.45)))
    person = Person({"v": "q"}, "b")
    assert [vote_of(document, {"group": group}, person) for group in (0, 1)] == [1, 0]


@pytest.mark.parametrize("seed", range(20))
def test_votes_on_models_with_weights_are_those_of_the_device(seed):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.01, 1, 2).round(3).tolist()
    told = model({**U, "weight": weights[0]}, {**V, "weight": weights[1]}, prior=(0.5, 0.5))
    document, device = document_of(told, model()), Classifier.from_json(json.dumps(told))
    for u in FEATURES[0]["values"]:
        for v in FEATURES[1]["values"]:
            vote = vote_of(document, {"group": 0}, Person({"u": u, "v": v}, "b"))
            assert vote == int(device.predict({"u": u, "v": v}) == "b")
