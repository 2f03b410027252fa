"""A device votes on one model of an evaluation round, or answers a bit of a feature: once, in one study.

Statistical tests state how often they fail by chance; seeds are fixed.
"""

from __future__ import annotations

import math
from collections import Counter

import pytest
from evaluated import draft, evaluation
from exact_coins import SeededCoins, enumerate_outcomes

from ldp_client import RefusedError, perturb
from ldp_client.answering import draw_questions
from ldp_client.testing import FakeServer
from protocols import Campaign
from protocols.wire.reports import make_secret

SECRETS = 4_000
RECORD = {"u": "3", "v": "q", "size": 5}


def secret_asked(campaign: Campaign, question: int) -> bytes:
    return next(s for n in range(1000) if draw_questions(campaign, s := n.to_bytes(32, "little"))[0].index == question)


def test_the_candidate_is_drawn_from_the_secret_alone_and_alike():
    """4,000 secrets: a share that leaves 1/4 by 5 standard deviations does so in one of a million."""
    campaign = evaluation()
    drawn = Counter(draw_questions(campaign, make_secret(SeededCoins(n)))[0].index for n in range(SECRETS))
    for times in drawn.values():
        assert abs(times - SECRETS / 4) < 5 * math.sqrt(SECRETS * 3 / 16)
    for record in (RECORD, {}, {"u": "1"}):
        sent = {perturb(campaign, record, label, secret=bytes(32))[0].question for label in ("a", "b")}
        assert sent == {draw_questions(campaign, bytes(32))[0].index}


def test_the_kind_of_bit_is_drawn_by_the_weights():
    """Each count leaves its expectation by 5 standard deviations in one of a million choices of the seeds."""
    campaign = Campaign.compile(draft(asks="model"))
    weights = [question.weight for question in campaign.questions]
    asked = [(question.kind, question.weight) for question in campaign.questions[:4]]
    assert asked == [("label", 105), ("pair", 100), ("xor", 76), ("marginal", 19)]
    drawn = Counter(draw_questions(campaign, make_secret(SeededCoins(n)))[0].index for n in range(SECRETS))
    for question, weight in enumerate(weights):
        share = weight / sum(weights)
        assert abs(drawn[question] - SECRETS * share) < 5 * math.sqrt(SECRETS * share * (1 - share))


@pytest.mark.parametrize(("record", "label", "vote"), [(RECORD, "b", 1), (RECORD, "a", 0), ({"u": "1"}, "a", 1)])
def test_a_vote_is_the_truth_with_the_probability_of_the_document(record, label, vote):
    campaign = evaluation()
    secret = secret_asked(campaign, 0)
    mechanism = campaign.questions[0].mechanism
    law = enumerate_outcomes(lambda c: perturb(campaign, record, label, secret=secret, coins=c)[0].payload)
    assert law[bytes([vote])] == mechanism.p
    assert law[bytes([1 - vote])] == 1 - mechanism.p
    assert math.log(mechanism.p / (1 - mechanism.p)) <= 1


def test_a_record_that_holds_nothing_or_cannot_be_read_is_classified_by_the_prior():
    class Unreadable(dict[str, object]):
        def get(self, *_: object) -> object:
            raise RuntimeError

    campaign = evaluation()
    secret = secret_asked(campaign, 0)
    for record in ({}, Unreadable(), {"u": "undeclared", "v": None}):
        law = enumerate_outcomes(
            lambda c, record=record: perturb(campaign, record, "a", secret=secret, coins=c)[0].payload
        )
        assert law[b"\x01"] == campaign.questions[0].mechanism.p


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


def test_a_device_says_in_words_which_bit_it_sent(join, server: FakeServer):
    told = set()
    for asked in (server.publish(evaluation()), server.publish(draft())):
        for _ in range(60):
            device, part = join(of=asked)
            part.contribute(RECORD, "b")
            assert device.run_once(5)
            (report,) = device.sent()
            told.add((report.asked, report.said.split(" (true")[0]))
    by_subject: dict[str, set[str]] = {}
    for subject, said in told:
        by_subject.setdefault(subject, set()).add(said)
    assert by_subject["whether both is right about y"] <= {"right", "wrong"}
    assert by_subject["v and y"] <= {"p, a or q, b", "p, b or q, a"}
    assert by_subject.get("v", set()) <= {"p", "q"}
