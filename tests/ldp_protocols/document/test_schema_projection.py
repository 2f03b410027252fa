"""Projections in drafts and documents, on the device, and the moments round that fits one privately."""

import json
import math

import pytest
from drafts import draft, number, text

from ldp_client.answering import encode
from ldp_protocols import Campaign, DocumentError, DraftError, ScriptedCoins
from ldp_protocols.document.questions import PAIR, PRODUCT, SQUARE, VALUE

BINNED, GAUSSIAN = number("pca1", -1, 1, bins=4), number("pca2", -1, 1)
CATEGORICAL = text("o", "a", "b")
PROJECTION = {
    "method": "pca",
    "inputs": ["x", "y"],
    "mean": [5, 10],
    "scale": [5, 10],
    "matrix": [[0.6, 0.8], [0.8, -0.6]],
    "outputs": [BINNED, GAUSSIAN],
    "fitted_on": "public",
}
PRIVATE = {"fitted_on": "A" * 43, "fitted_study": "s", "fitted_epsilon": 2}
DRAFT = draft(
    number("x", 0, 10),
    text("colour", "red", "blue"),
    number("y", 0, 20),
    label={"name": "class", "classes": ["a", "b"]},
    privacy={"epsilon": 1, "discrete": "de", "continuous": "laplace"},
    projection=PROJECTION,
)
NUMBERS = [DRAFT["features"][0], DRAFT["features"][2]]
ROUND = {**DRAFT, "features": NUMBERS, "projection": None, "asks": "moments", "study": "credit"}


def compiled(**changes):
    return Campaign.compile({**DRAFT, "projection": {**PROJECTION, **changes}})


def test_outputs_are_asked_in_place_of_the_inputs_and_the_document_carries_the_projection():
    campaign = compiled()
    assert [feature.name for feature in campaign.asked] == ["colour", "pca1", "pca2"]
    asked = [(q.kind, q.feature, q.group) for q in campaign.questions[1:]]
    assert asked == [(PAIR, "colour", 1), (PAIR, "pca1", 2), (VALUE, "pca2", 3), (SQUARE, "pca2", 3)]
    assert json.loads(campaign.document)["projection"]["matrix"] == [[0.6, 0.8], [0.8, -0.6]]
    assert Campaign.parse(campaign.document, campaign.id) == campaign


def test_the_device_clips_centres_scales_and_adds_from_left_to_right_to_answer_about_an_output():
    campaign = compiled()
    projection = campaign.projection
    assert projection.output(0, [10, 20]) == 0.6 * 1.0 + 0.8 * 1.0
    assert projection.output(1, [1e300, -math.inf]) == 0.8 * 1.0 + -0.6 * -1.0
    assert projection.output(0, [5, 10]) == 0.0
    binned, gaussian = campaign.questions[2], campaign.questions[3]
    record = {"x": 7.5, "y": 10, "colour": object()}  # u = (0.5, 0)
    no_coins = ScriptedCoins([])
    assert encode(campaign, binned, record, 1, no_coins) == 2 * 2 + 1  # 0.3 lies in the third of four bins
    assert encode(campaign, gaussian, record, 1, no_coins) == (1, int(0.4 * 2**52))


def test_a_missing_input_is_a_uniformly_random_one():
    campaign = compiled()
    gaussian = campaign.questions[3]
    middle = 1 << 52  # the integer in [0, 2**53] that stands for t = 0
    coins = ScriptedCoins([middle])
    assert encode(campaign, gaussian, {"x": 7.5, "y": "?"}, 0, coins) == (0, int(0.4 * 2**52))
    assert coins.taken == 1
    assert encode(campaign, gaussian, {}, 0, ScriptedCoins([0])) == (0, -(2**52)), "without any input it is its own end"
    highest, complete = ScriptedCoins([2 * middle]), {"x": 7.5, "y": 20}
    assert encode(campaign, gaussian, {"x": 7.5}, 0, highest) == encode(
        campaign, gaussian, complete, 0, ScriptedCoins([])
    )


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("projection.method", [{"method": "lda"}]),
        ("projection.inputs", [{"inputs": ["x", "x"]}, {"inputs": []}]),
        ("projection.inputs[1]", [{"inputs": ["x", "w"]}, {"inputs": ["x", "colour"]}]),
        ("projection.mean", [{"mean": [0]}]),
        ("projection.mean[1]", [{"mean": [0, math.nan]}]),
        ("projection.scale", [{"scale": [1, 0]}]),
        ("projection.matrix", [{"matrix": [[1, 0]]}]),
        ("projection.matrix[0]", [{"matrix": [[1e308, 1e308], [1, 0]], "scale": [1e-9, 1]}]),
        ("projection.matrix[1]", [{"matrix": [[1, 0], [1]]}, {"matrix": [[1, 0], [0, 0]]}]),
        ("projection.outputs", [{"outputs": PROJECTION["outputs"] * 2}, {"outputs": []}]),
        ("projection.outputs[0].name", [{"outputs": [{**BINNED, "name": "x"}, GAUSSIAN]}]),
        ("projection.outputs[0].bins", [{"outputs": [{**BINNED, "bins": 1}, GAUSSIAN]}]),
        ("projection.outputs[0].kind", [{"outputs": [CATEGORICAL, GAUSSIAN]}]),
        ("projection.outputs[1].name", [{"outputs": [BINNED] * 2}]),
        ("projection.fitted_on", [{"fitted_on": "my customers"}, {"fitted_on": None}]),
        ("projection.fitted_study", [{"fitted_study": "s"}, {**PRIVATE, "fitted_study": None}]),
        ("projection.fitted_epsilon", [{"fitted_epsilon": 1}, *({**PRIVATE, "fitted_epsilon": e} for e in (None, 0))]),
        ("projection.rank", [{"rank": 2}]),
        ("study", [PRIVATE]),
    ],
)
def test_a_projection_that_cannot_work_is_refused_when_compiling(field, wrong):
    for changes in wrong:
        with pytest.raises(DraftError) as caught:
            compiled(**changes)
        assert caught.value.field == field


def test_a_projection_of_a_private_round_is_written_with_its_study_and_epsilon_and_a_public_one_without():
    campaign = Campaign.compile({**DRAFT, "study": "t", "projection": {**PROJECTION, **PRIVATE}})
    assert PRIVATE.items() <= json.loads(campaign.document)["projection"].items()
    assert Campaign.parse(campaign.document, campaign.id) == campaign
    assert not {"fitted_study", "fitted_epsilon"} & json.loads(compiled().document)["projection"].keys()


def test_more_components_than_inputs_are_refused_with_the_number_that_fits():
    with pytest.raises(DraftError, match="2 inputs have at most 2 components, not 3"):
        compiled(outputs=[{**GAUSSIAN, "name": f"o{i}"} for i in range(3)], matrix=[[1, 0]] * 3)


def test_a_moments_round_asks_class_sums_and_the_product_of_every_pair():
    campaign = Campaign.compile(ROUND)
    assert [(q.kind, q.feature, q.other, q.group, q.domain_size) for q in campaign.questions] == [
        ("label", None, None, 0, 2),
        (VALUE, "x", None, 1, 2),
        (VALUE, "y", None, 2, 2),
        (PRODUCT, "x", "x", 3, 1),
        (PRODUCT, "x", "y", 4, 1),
        (PRODUCT, "y", "y", 5, 1),
    ]
    assert campaign.loss <= 1


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"study": None}, "study"),
        ({"asks": "everything"}, "asks"),
        ({"privacy": {"epsilon": 1, "answers": "all"}}, "privacy.answers"),
        ({"privacy": {"epsilon": 1, "release_every": 100}}, "privacy.release_every"),
        ({"projection": PROJECTION}, "projection"),
        ({"features": DRAFT["features"]}, "features[1].kind"),
        ({"features": [number(f"x{i}") for i in range(128)]}, "features"),
    ],
)
def test_a_moments_round_that_cannot_be_is_refused(changes, field):
    with pytest.raises(DraftError) as caught:
        Campaign.compile({**ROUND, **changes})
    assert caught.value.field == field


@pytest.mark.parametrize(
    "change", [{"other": "z"}, {"other": None}, {"group": 2}, {"domain_size": 2}, {"kind": "value"}]
)
def test_a_tampered_product_question_is_refused(change):
    document = json.loads(Campaign.compile(ROUND).document)
    document["questions"][4] |= change
    with pytest.raises(DocumentError):
        Campaign.parse(json.dumps(document).encode())
