"""What a draft of a round of moments or of an evaluation asks for in vain is refused, and named; a document is not."""

from __future__ import annotations

import json

import pytest
from evaluated import draft, evaluation, model

from protocols import Campaign, DraftError

NUMBERS = [{"name": name, "kind": "continuous", "low": 0, "high": 1} for name in ("x", "z")]
MOMENTS = {"asks": "moments", "features": NUMBERS}
SCORE = {"asks": "score", "candidates": [{"name": name, "model": model()} for name in ("one", "other")]}
ALONE = {"name": "y", "classes": ["a", "b"], "weight": 0}


def refused(asked, privacy, **changes):
    with pytest.raises(DraftError) as told:
        Campaign.compile(draft(**{**asked, **changes}, privacy={"epsilon": 3, **privacy}))
    return told.value


@pytest.mark.parametrize(
    ("asked", "privacy", "field", "right"),
    [
        (SCORE, {"joint": True}, "privacy.joint", "an evaluation round never does. Leave it out, or say false"),
        (SCORE, {"xor": True}, "privacy.xor", "an evaluation round never does. Leave it out, or say false"),
        (SCORE, {"continuous": "sign"}, "privacy.continuous", "is sign, and an evaluation round asks about no feature"),
        (SCORE, {"theta": 0.25}, "privacy.theta", "an evaluation round, whose answers are one bit. Leave it out"),
        (MOMENTS, {"joint": True}, "privacy.joint", "a round of moments never does. Leave it out, or say false"),
        (MOMENTS, {"xor": True}, "privacy.xor", "a round of moments never does. Leave it out, or say false"),
    ],
    ids=lambda value: str(value)[:12],
)
def test_what_a_round_never_asks_is_refused_where_it_is_asked_for(asked, privacy, field, right):
    told = refused(asked, privacy)
    assert told.field == field
    assert right in told.problem


@pytest.mark.parametrize("privacy", [{"discrete": "oue"}, {"theta": 0.5}, {"discrete": "the", "theta": 0.5}])
def test_a_mechanism_for_the_label_is_refused_in_a_round_of_moments_that_never_asks_for_it_alone(privacy):
    told = refused(MOMENTS, privacy, label=ALONE)
    assert told.field == f"privacy.{next(iter(privacy))}"
    assert "label.weight 1" in told.problem
    assert Campaign.compile(draft(**MOMENTS, privacy={"epsilon": 3, **privacy}))


def test_bins_are_refused_in_a_round_of_moments_which_asks_for_the_number_itself():
    told = refused(MOMENTS, {}, features=[NUMBERS[0], {**NUMBERS[1], "bins": 4}])
    assert told.field == "features[1].bins"
    assert "is 4, and a round of moments asks for the number itself. Leave it out here" in told.problem


@pytest.mark.parametrize("asked", [SCORE, MOMENTS], ids=["score", "moments"])
def test_what_a_round_does_not_do_can_be_refused_and_the_defaults_be_said(asked):
    said = {"joint": False, "xor": False, "theta": None, "continuous": "auto", "discrete": "auto", "answers": "one"}
    plain = Campaign.compile(draft(**asked))
    assert Campaign.compile(draft(**asked, privacy={"epsilon": 1, **said})).questions == plain.questions


def test_a_document_that_says_so_was_published_and_is_read():
    content = json.loads(evaluation().document)
    content["privacy"] |= {"joint": True, "xor": True, "continuous": "sign", "theta": 0.25}
    assert Campaign.parse(json.dumps(content).encode()).privacy.joint
