"""A device tells of one model whether it is right, or where its score lies: once, in one study.

Statistical tests state how often they fail by chance; seeds are fixed.
"""

import json
import math
from collections import Counter
from itertools import product
from pathlib import Path

import pytest
from evaluated import LABEL, U, V, draft, model
from exact_coins import SeededCoins, enumerate_outcomes

from ldp_client import Classifier, RefusedError, perturb
from ldp_client.answering import item_of
from ldp_client.draw import draw_questions
from protocols import Campaign, ScriptedCoins
from protocols.wire import make_secret

SECRETS = 4_000
RECORD = {"u": "3", "v": "q", "size": 5}
RECORDS = [RECORD, {}, {"u": "1"}, {"u": "2", "v": "p"}, {"u": "undeclared", "v": None}]
EDGES = [-2.5, -0.5, 0, 0.25, 3]


def evaluation(of=None, **changes):
    asked = {"model": of or model(U, V), "edges": EDGES, **changes}
    return Campaign.compile(draft(title="How good?", asks="score", evaluation=asked))


def secret_asked(campaign, question):
    return next(s for n in range(1000) if draw_questions(campaign, s := n.to_bytes(32, "little"))[0].index == question)


def answer(campaign, question, record, class_index):
    """The answer before it is perturbed, which takes no coin."""
    return item_of(campaign, campaign.questions[question], record, class_index, ScriptedCoins([]))


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
        def get(self, *_):
            raise RuntimeError

    campaign = evaluation()
    for question in (0, 1):
        nothing = [answer(campaign, question, {}, c) for c in (0, 1)]
        for record in (Unreadable(), {"u": "undeclared", "v": None}):
            assert [answer(campaign, question, record, c) for c in (0, 1)] == nothing


def test_who_answered_the_first_round_is_refused_the_second_and_the_other_way_round(join, server, campaign, code_of):
    learned, asked = server.publish(draft()), server.publish(evaluation())
    for first, second in ((learned, asked), (asked, learned)):
        device, part = join(of=first)
        receipt = part.contribute(RECORD, "b")
        assert (receipt.study, receipt.epsilon) == ("s", first.realised_epsilon)
        assert device.status().total_epsilon == pytest.approx(first.realised_epsilon)
        assert code_of(RefusedError, join, of=second, device=device) == "study-answered"
        assert device.status().total_epsilon == pytest.approx(first.realised_epsilon)


def test_a_device_says_in_words_what_it_sent(join, server):
    told = {}
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


def test_a_device_says_which_class_the_model_said_where_there_are_three(join, server):
    label = {**LABEL, "classes": ["a", "b", "c"]}
    three = {**model(), "classes": label["classes"], "prior": [0.3, 0.3, 0.4]}
    asked = {"model": three, "weights": [0, 1]}
    published = server.publish(Campaign.compile(draft(label=label, asks="score", evaluation=asked)))
    device, part = join(of=published)
    part.contribute({}, "b")
    assert device.run_once(5)
    (report,) = device.sent()
    assert any(f"the model says {said}, {name}" in report.said for said in "abc" for name in "abc")
