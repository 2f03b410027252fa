"""A device tells of one model whether it is right, or where its score lies: once, in one study.

Statistical tests state how often they fail by chance; seeds are fixed.
"""

import json
from itertools import product
from pathlib import Path

import pytest
from evaluated import LABEL, U, V, draft, model

from ldp_client import Classifier, RefusedError
from ldp_client.answering import item_of
from ldp_protocols import Campaign, ScriptedCoins

RECORD = {"u": "3", "v": "q", "size": 5}
EDGES = [-2.5, -0.5, 0, 0.25, 3]


def evaluation(of=None, **changes):
    asked = {"model": of or model(U, V), "edges": EDGES, **changes}
    return Campaign.compile(draft(title="How good?", asks="score", evaluation=asked))


def answer(campaign, question, record, class_index):
    """The answer before it is perturbed, which takes no coin."""
    return item_of(campaign, campaign.questions[question], record, class_index, ScriptedCoins([]))


VECTORS = Path(__file__).resolve().parents[2] / "protocols" / "vectors"
PUBLISHED = json.loads((VECTORS / "documents.json").read_text(encoding="utf-8"))["accepted"]
CASES = json.loads((VECTORS / "reports.json").read_text(encoding="utf-8"))["accepted"]
ROUNDS = {one["name"]: one["document"] for one in PUBLISHED if one["name"].startswith("evaluation")}


@pytest.mark.parametrize("name", ROUNDS)
def test_the_answers_are_what_the_classifier_says(name):
    """In all rounds of the test vectors: two classes and three, a projection, records that the model holds impossible.

    The edge at 0 parts the places of two classes, so that the table tells the confusion matrix.
    """
    campaign = Campaign.parse(ROUNDS[name].encode())
    classifier, edges = Classifier(campaign.evaluation.model), campaign.evaluation.edges
    classes = campaign.label.classes
    for record, (class_index, own) in product([{}, *(case["record"] for case in CASES)], enumerate(classes)):
        said, scores = classifier.predict(record), classifier.scores(record)
        place = scores.index(max(scores)) if edges is None else sum(scores[1] - scores[0] > edge for edge in edges)
        assert said == classes[place if edges is None else place > edges.index(0)]
        right_answers = {"right": said == own, "score": len(classes) * place + class_index}
        for question in campaign.questions:
            assert answer(campaign, question.index, record, class_index) == right_answers[question.kind]


def test_who_answered_the_first_round_is_refused_the_second_and_the_other_way_round(join, server, campaign, code_of):
    learned, asked = server.publish(draft()), server.publish(evaluation())
    for first, second in ((learned, asked), (asked, learned)):
        device, part = join(of=first)
        receipt = part.contribute(RECORD, "b")
        assert (receipt.study, receipt.epsilon) == ("s", first.realised_epsilon)
        assert device.status().total_epsilon == pytest.approx(first.realised_epsilon)
        assert code_of(RefusedError, join, of=second, device=device) == "study-answered"
        assert device.status().total_epsilon == pytest.approx(first.realised_epsilon)


def test_a_device_says_in_words_what_it_sent_and_where_there_are_three_classes_which_one_the_model_said(join, server):
    def sent(published, record):
        device, part = join(of=published)
        part.contribute(record, "b")
        assert device.run_once(5)
        (report,) = device.sent()
        return report.asked, report.said

    of_two = server.publish(evaluation(edges=[-1, 0]))
    bins = ("log odds up to -1", "log odds (-1, 0]", "log odds above 0")
    for asked, said in (sent(of_two, RECORD) for _ in range(40)):
        if asked == "whether the model is right about y":
            assert said.split(" (true")[0] in {"right", "wrong"}
        else:
            assert asked == "what the model says of y, and y"
            assert any(f"{one}, {name}" in said for one in bins for name in "ab")
    three = {**model(), "classes": ["a", "b", "c"], "prior": [0.3, 0.3, 0.4]}
    label = {**LABEL, "classes": three["classes"]}
    of_three = Campaign.compile(draft(label=label, asks="score", evaluation={"model": three, "weights": [0, 1]}))
    _, said = sent(server.publish(of_three), {})
    assert any(f"the model says {one}, {name}" in said for one in "abc" for name in "abc")
