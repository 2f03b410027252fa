"""What a draft of a round of moments or of an evaluation asks for in vain is refused, and named; a document is not."""

import json

import pytest
from evaluated import draft, model

from protocols import Campaign, DraftError

NUMBERS = [{"name": name, "kind": "continuous", "low": 0, "high": 1} for name in ("x", "z")]
MOMENTS = {"asks": "moments", "features": NUMBERS}
SCORE = {"asks": "score", "evaluation": {"model": model()}}
ALONE = {"name": "y", "classes": ["a", "b"], "weight": 0}


def refused(asked, privacy, **changes):
    with pytest.raises(DraftError) as told:
        Campaign.compile(draft(**{**asked, **changes}, privacy={"epsilon": 3, **privacy}))
    return told.value


def test_a_mechanism_for_numbers_is_refused_in_an_evaluation_round_and_bins_are_in_one_of_moments():
    told = refused(SCORE, {"continuous": "sign"})
    assert told.field == "privacy.continuous"
    assert "is sign, and an evaluation round asks about no feature" in told.problem
    told = refused(MOMENTS, {}, features=[NUMBERS[0], {**NUMBERS[1], "bins": 4}])
    assert told.field == "features[1].bins"
    assert "is 4, and a round of moments asks for the number itself. Leave it out here" in told.problem


@pytest.mark.parametrize("privacy", [{"discrete": "oue"}, {"theta": 0.5}, {"discrete": "the", "theta": 0.5}])
def test_a_mechanism_for_the_label_is_refused_in_a_round_of_moments_that_never_asks_for_it_alone(privacy):
    told = refused(MOMENTS, privacy, label=ALONE)
    assert told.field == f"privacy.{next(iter(privacy))}"
    assert "label.weight 1" in told.problem
    assert Campaign.compile(draft(**MOMENTS, privacy={"epsilon": 3, **privacy}))


@pytest.mark.parametrize("asked", [SCORE, MOMENTS], ids=["score", "moments"])
def test_the_defaults_of_a_round_can_be_said(asked):
    said = {"theta": None, "continuous": "auto", "discrete": "auto", "answers": "one"}
    plain = Campaign.compile(draft(**asked))
    assert Campaign.compile(draft(**asked, privacy={"epsilon": 1, **said})).questions == plain.questions


def test_the_mechanism_of_the_score_and_its_threshold_are_the_authors_and_right_or_not_is_always_one_bit_by_de():
    privacy = {"epsilon": 1, "discrete": "the", "theta": 0.25}
    right, score = Campaign.compile(draft(**SCORE, privacy=privacy)).questions
    assert (right.mechanism.name, right.domain_size) == ("de", 2)
    assert score.mechanism.name == "the"
    best = Campaign.compile(draft(**SCORE, privacy={**privacy, "theta": None})).questions[1]
    assert score.mechanism != best.mechanism


def test_a_document_that_says_so_was_published_and_is_read():
    content = json.loads(Campaign.compile(draft(**SCORE)).document)
    content["privacy"] |= {"continuous": "sign", "theta": 0.25}
    assert Campaign.parse(json.dumps(content).encode()).privacy.theta == 0.25
