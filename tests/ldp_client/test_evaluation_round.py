"""A device tells of one model whether it is right, or where its score lies: once, in one study.

Statistical tests state how often they fail by chance; seeds are fixed.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
from evaluated import LABEL, U, V, draft, model
from exact_coins import SeededCoins, enumerate_outcomes

from ldp_client import Classifier, RefusedError, perturb
from ldp_client.answering import draw_questions, item_of
from ldp_client.testing import FakeServer
from protocols import Campaign, ScriptedCoins
from protocols.wire import make_secret

SECRETS = 4_000
RECORD = {"u": "3", "v": "q", "size": 5}
RECORDS: list[dict[str, object]] = [RECORD, {}, {"u": "1"}, {"u": "2", "v": "p"}, {"u": "undeclared", "v": None}]
EDGES = [-2.5, -0.5, 0, 0.25, 3]


def evaluation(of: dict[str, Any] | None = None, **changes: Any) -> Campaign:
    asked = {"model": of or model(U, V), "edges": EDGES, **changes}
    return Campaign.compile(draft(title="How good?", asks="score", evaluation=asked))


def secret_asked(campaign: Campaign, question: int) -> bytes:
    return next(s for n in range(1000) if draw_questions(campaign, s := n.to_bytes(32, "little"))[0].index == question)


def answer(campaign: Campaign, question: int, record: object, class_index: int) -> object:
    """The answer before it is perturbed, which takes no coin."""
    return item_of(campaign, campaign.questions[question], record, class_index, ScriptedCoins([]))  # type: ignore[arg-type]


@pytest.mark.parametrize("weights", [(1, 1), (3, 1)])
def test_the_question_is_drawn_by_the_weights_from_the_secret_alone(weights):
    """4,000 secrets: a share leaves its expectation by 5 standard deviations in one of a million choices of seeds."""
    campaign = evaluation(weights=list(weights))
    drawn = Counter(draw_questions(campaign, make_secret(SeededCoins(n)))[0].kind for n in range(SECRETS))
    share = weights[0] / sum(weights)
    assert abs(drawn["right"] - SECRETS * share) < 5 * math.sqrt(SECRETS * share * (1 - share))
    assert drawn.total() == SECRETS
    sent = {perturb(campaign, record, y, secret=bytes(32))[0].question for record in RECORDS for y in ("a", "b")}
    assert sent == {draw_questions(campaign, bytes(32))[0].index}


@pytest.mark.parametrize("record", RECORDS, ids=str)
def test_the_answers_are_what_the_classifier_says(record):
    campaign = evaluation()
    classifier = Classifier(campaign.evaluation.model)
    first, second = classifier.scores(record)
    place = sum(second - first > edge for edge in EDGES)
    for class_index, name in enumerate("ab"):
        assert answer(campaign, 0, record, class_index) == (classifier.predict(record) == name)
        assert answer(campaign, 1, record, class_index) == 2 * place + class_index


def test_places_on_the_side_of_the_second_class_are_those_that_the_model_says_it_in():
    """The edge at 0 parts them, so that the table tells the confusion matrix."""
    campaign = evaluation()
    for record in RECORDS:
        above = answer(campaign, 1, record, 0) // 2 > EDGES.index(0)
        assert above == (Classifier(campaign.evaluation.model).predict(record) == "b") == answer(campaign, 0, record, 1)


def test_of_three_classes_the_place_is_the_class_that_the_model_says():
    label = {**LABEL, "classes": ["a", "b", "c"]}
    table = {**V, "likelihood": [[0.7, 0.2, 0.1], [0.3, 0.8, 0.9]]}
    three = {**model(table), "classes": label["classes"], "prior": [0.3, 0.3, 0.4]}
    asked = {"model": three}
    campaign = Campaign.compile(draft(label=label, asks="score", evaluation=asked))
    for record, said in (({"v": "p"}, 0), ({"v": "q"}, 2), ({}, 2)):
        for class_index in range(3):
            assert answer(campaign, 1, record, class_index) == 3 * said + class_index
            assert answer(campaign, 0, record, class_index) == (said == class_index)


def test_a_record_that_the_model_holds_impossible_is_scored_by_the_prior():
    sure = [{**U, "likelihood": [[1.0, 0.5], [0.0, 0.25], [0.0, 0.25]]}, {**V, "likelihood": [[0.5, 1.0], [0.5, 0.0]]}]
    campaign = evaluation(model(*sure, prior=(0.6, 0.4)))
    place = sum(math.log(0.4 / 0.6) > edge for edge in EDGES)
    assert answer(campaign, 1, {"u": "2", "v": "q"}, 1) == 2 * place + 1
    assert answer(campaign, 0, {"u": "2", "v": "q"}, 0) == 1
    assert answer(campaign, 1, {"u": "2", "v": "p"}, 0) == 2 * len(EDGES), "only the second is possible"
    assert answer(campaign, 1, {"u": "1", "v": "q"}, 0) == 0, "only the first is possible"


def test_a_models_projection_takes_a_missing_input_at_its_mean():
    numbers = [
        {"name": name, "kind": "continuous", "low": 0, "high": 10, "missing": False} for name in ("size", "width")
    ]
    projection = {
        "method": "pca",
        "inputs": ["size", "width"],
        "mean": [5.0, 4.0],
        "scale": [2.0, 2.0],
        "matrix": [[0.6, 0.8]],
        "outputs": [{"name": "first", "kind": "continuous", "low": -5, "high": 5}],
        "fitted_on": "public",
    }
    output = {"name": "first", "kind": "gaussian", "low": -5, "high": 5, "mean": [-1.0, 1.0], "variance": [1.0, 1.0]}
    of = {**model(output, prior=(0.5, 0.5)), "projection": {"features": numbers, **projection}}
    asked = {"model": of, "edges": [-1, 0, 1]}
    campaign = Campaign.compile(draft(features=numbers, asks="score", evaluation=asked))
    for size, odds in ((9, 2.4), (1, -2.4)):  # twice the output, (size - mean) / scale * .6
        assert answer(campaign, 1, {"size": size}, 0) == answer(campaign, 1, {"size": size, "width": 4}, 0)
        assert answer(campaign, 1, {"size": size}, 0) == 2 * sum(odds > edge for edge in (-1, 0, 1))
    assert answer(campaign, 1, {}, 0) == 2, "without any input the prior decides, whose log odds are 0"


@pytest.mark.parametrize(("record", "label", "told"), [(RECORD, "b", 1), (RECORD, "a", 0), ({"u": "1"}, "a", 1)])
def test_right_or_wrong_is_the_truth_with_the_probability_of_the_document(record, label, told):
    campaign = evaluation()
    secret = secret_asked(campaign, 0)
    mechanism = campaign.questions[0].mechanism
    law = enumerate_outcomes(lambda c: perturb(campaign, record, label, secret=secret, coins=c)[0].payload)
    assert law[bytes([told])] == mechanism.p
    assert law[bytes([1 - told])] == 1 - mechanism.p
    assert math.log(mechanism.p / (1 - mechanism.p)) <= 1


def test_a_record_that_holds_nothing_or_cannot_be_read_is_classified_by_the_prior():
    class Unreadable(dict[str, object]):
        def get(self, *_: object) -> object:
            raise RuntimeError

    campaign = evaluation()
    for question in (0, 1):
        nothing = [answer(campaign, question, {}, c) for c in (0, 1)]
        for record in (Unreadable(), {"u": "undeclared", "v": None}):
            assert [answer(campaign, question, record, c) for c in (0, 1)] == nothing


def test_who_answered_the_first_round_is_refused_the_second_and_the_other_way_round(
    join, server: FakeServer, campaign: Campaign
):
    learned, asked = server.publish(draft()), server.publish(evaluation())
    for first, second in ((learned, asked), (asked, learned)):
        device, part = join(of=first)
        receipt = part.contribute(RECORD, "b")
        assert (receipt.study, receipt.epsilon) == ("s", first.realised_epsilon)
        assert device.status().total_epsilon == pytest.approx(first.realised_epsilon)
        _, other = join(of=second, device=device)
        with pytest.raises(RefusedError) as refused:
            other.contribute(RECORD, "b")
        assert refused.value.code == "study-answered"
        assert device.status().total_epsilon == pytest.approx(first.realised_epsilon)


def test_a_device_says_in_words_what_it_sent(join, server: FakeServer):
    told: dict[str, set[str]] = {}
    asked = server.publish(evaluation(edges=[-1, 0]))
    for _ in range(40):
        device, part = join(of=asked)
        part.contribute(RECORD, "b")
        assert device.run_once(5)
        (report,) = device.sent()
        told.setdefault(report.asked, set()).add(report.said)
    assert set(told) <= {"whether the model is right about y", "what the model says of y, and y"}
    for said in told.get("whether the model is right about y", ()):
        assert said.split(" (true")[0] in {"right", "wrong"}
    bins = ("log odds from -infinity to -1", "log odds from -1 to 0", "log odds from 0 to infinity")
    for said in told.get("what the model says of y, and y", ()):
        assert any(f"{one}, {name}" in said for one in bins for name in "ab")


def test_a_device_says_which_class_the_model_said_where_there_are_three(join, server: FakeServer):
    label = {**LABEL, "classes": ["a", "b", "c"]}
    three = {**model(), "classes": label["classes"], "prior": [0.3, 0.3, 0.4]}
    asked = {"model": three, "weights": [0, 1]}
    published = server.publish(Campaign.compile(draft(label=label, asks="score", evaluation=asked)))
    device, part = join(of=published)
    part.contribute({}, "b")
    assert device.run_once(5)
    (report,) = device.sent()
    assert any(f"the model says {said}, {name}" in report.said for said in "abc" for name in "abc")
