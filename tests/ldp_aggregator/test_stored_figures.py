"""Twelve campaigns, all mechanisms among them: the estimates and models that their tallies have always given.

Every number but those of training's own remarks is kept, to 1e-12 of it for estimates and to 1e-9 for models. A change
that moves one of them changes what is estimated: it has to say so, and to store the figures anew.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldp_aggregator import estimate, train
from ldp_aggregator.counting.tally import Tally
from ldp_protocols import Campaign
from ldp_protocols.mechanisms import DISCRETE, MOMENTS

STORED = json.loads((Path(__file__).parent / "stored_figures.json").read_text(encoding="utf-8"))


def tally_of(stored: dict[str, Any]) -> Tally:
    tally = Tally(Campaign.parse(json.dumps(stored["document"], separators=(",", ":")).encode()))
    for question, (n, counts) in enumerate(zip(stored["n"], stored["counts"], strict=True)):
        tally.add(question, n, np.array(counts))
    return tally


def unlike(found: Any, kept: Any, precision: float, place: str = "") -> list[str]:
    """Where two values differ, numbers by more than ``precision`` of themselves."""
    if isinstance(kept, dict):
        assert found.keys() == kept.keys(), place
        return [where for key in kept for where in unlike(found[key], kept[key], precision, f"{place}.{key}")]
    if isinstance(kept, list):
        assert len(found) == len(kept), place
        return [
            where
            for number, (one, other) in enumerate(zip(found, kept, strict=True))
            for where in unlike(one, other, precision, f"{place}[{number}]")
        ]
    alike = math.isclose(found, kept, rel_tol=precision, abs_tol=0) if isinstance(kept, float) else found == kept
    return [] if alike else [f"{place}: {found}, not {kept}"]


def test_every_mechanism_is_among_them():
    asked = {question["mechanism"] for stored in STORED for question in stored["document"]["questions"]}
    assert asked == {*DISCRETE, *MOMENTS}
    assert len(STORED) == 12


@pytest.mark.parametrize("stored", STORED, ids=lambda stored: stored["document"]["title"])
def test_estimates_are_the_stored_ones(stored):
    tally = tally_of(stored)
    found = estimate(tally.campaign, tally)
    questions = [[one.cells.value.tolist(), one.cells.variance.tolist()] for one in found.questions]
    assert unlike(questions, stored["questions"], 1e-12) == []
    prior = [found.class_prior.value.tolist(), found.class_prior.variance.tolist()]
    assert unlike(prior, stored["class_prior"], 1e-12) == []
    moments = {
        name: [one.mean.tolist(), one.variance.tolist(), one.mean_variance.tolist()]
        for name, one in found.moments.items()
    }
    assert unlike(moments, stored["moments"], 1e-12) == []


@pytest.mark.parametrize("stored", STORED, ids=lambda stored: stored["document"]["title"])
def test_the_default_model_is_the_stored_one(stored):
    tally = tally_of(stored)
    model = json.loads(train(tally.campaign, tally).to_json())
    del model["training"]
    assert unlike(model, stored["model"], 1e-9) == []
