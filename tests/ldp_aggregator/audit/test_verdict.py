"""Parts of an audit: who is asked in which order, what each event may be wrong with, and what the whole comes to."""

import json
from dataclasses import replace

import numpy as np
import pytest
from audited_campaigns import campaign
from drafts import draft, text
from sound_clients import Vectorised

from ldp_aggregator.audit import traffic, verdict
from ldp_aggregator.audit.asking.people import people_of
from ldp_aggregator.audit.power import Floor
from ldp_aggregator.audit.repeats import Alike
from ldp_aggregator.audit.searching.events import ALONE, BLOCK, COMPANY, SIDE, WHOLE, Event
from ldp_aggregator.audit.verdict import Audit, Finding, _ask, _bounded, _first_of_each, _stated, audit, markdown
from ldp_protocols import Campaign

SEEN = Event("e", WHOLE, 1.0, (0,), None, None, 60, 100, 20, 100)


@pytest.mark.parametrize("answers", ["one", "all"])
def test_the_stated_loss_is_that_of_the_campaign(answers):
    """The worst question's, or where all groups are answered the sum of theirs; two share no code."""
    features = text("u", "1", "2"), text("v", "1", "2", "3")
    asked = Campaign.compile(draft(*features, privacy={"epsilon": 2.0, "answers": answers, "discrete": "oue"}))
    assert len(asked.pools) == (1 if answers == "one" else 3)
    assert _stated(json.loads(asked.document)) == pytest.approx(asked.realised_epsilon, rel=1e-9)


@pytest.mark.parametrize("number", [1, 4])
def test_the_events_of_a_kind_share_its_part_of_the_probability_to_be_wrong(number):
    bounded = _bounded([SEEN] * number, 0.05)
    assert [alpha for _, alpha in bounded] == [0.05 / number] * number
    assert [event.bound for event, _ in bounded] == [SEEN.bounded(0.05 / number).bound] * number
    assert SEEN.bounded(0.05).bound == pytest.approx(0.532796, abs=1e-6)
    assert SEEN.bounded(0.05 / 4).bound < 0.53


@pytest.mark.parametrize(
    ("events", "least"),
    [
        ([], 0.0),
        ([(WHOLE, -0.3)], 0.0),
        ([(WHOLE, 0.5), (COMPANY, 3.0)], 0.5),
        ([(WHOLE, 0.5), (BLOCK, 0.75)], 0.75),
    ],
)
def test_the_loss_that_was_proved_is_the_largest_of_what_a_device_sends(events, least):
    """What one sends in two processes is another matter: it says nothing of two people."""
    found = tuple(replace(SEEN, scope=scope, bound=bound) for scope, bound in events)
    audited = Audit(1.0, 2.0, 9, (), 0, 18, found, (), Floor(None, 1.0, None))
    assert (audited.lower_bound, audited.reached, audited.passed) == (least, least / 2, True)


@pytest.mark.parametrize("trials", [1, 2, 5])
def test_two_processes_are_asked_in_opposite_orders_half_of_the_trials_each(trials):
    document = campaign(3)
    people = people_of(json.loads(document), np.random.default_rng(1))[:3]
    lives = []

    def client(document, asked, home):
        lives.append(asked)
        return Vectorised(len(lives))(document, asked)

    seen, twins = _ask(document, client, people, [trials, 4, 3], False)
    numbers = [[people.index(person) for person in asked] for asked in lives]
    count = min(256, trials)
    first, second = [0] * (trials - trials // 2) + [1, 1, 2, 2], [2, 1, 1] + [0] * (trials // 2)
    assert numbers == [[0] * count + [1] * count + first, [0] * count + [1] * count + second]
    assert [len(one) for one in twins] == [2 * count] * 2
    assert np.bincount(seen.person).tolist() == [trials, 4, 3]
    assert seen.process.tolist() == [0] * len(first) + [1] * len(second)


def test_all_that_an_audit_may_be_wrong_with_adds_up_to_what_it_claims(monkeypatch):
    """A sound client fails with probability 0.001 at most, whatever is looked at; each look is told its own part."""
    spent = []

    def noted(name, place):
        look = getattr(verdict, name)

        def looks(*given):
            spent.append(given[place])
            return look(*given)

        monkeypatch.setattr(verdict, name, looks)

    for name in ("_bounded", "_coin_findings", "_lag_findings", "twisted_ids", "public_noise", "small_seeds"):
        noted(name, -1)
    for name in ("repeated_ids", "uneven_ids"):
        monkeypatch.setattr(verdict.repeats, name, lambda ids, alpha: spent.append(alpha))
    assert audit(campaign(3, 3), Vectorised(1), 6, rng=np.random.default_rng(1)).passed
    assert len(spent) == 15
    looked = 0.001 * (1 - 0.02 - 0.02)
    assert sum(spent) == pytest.approx(looked, rel=1e-9), "the rest is for time and traffic, at which nobody looked"


def test_what_traffic_may_be_wrong_with_is_shared_out_among_its_parts():
    assert sum(traffic.PARTS.values()) == pytest.approx(1.0)


def test_each_place_where_answers_may_be_alike_has_its_part_of_the_probability_to_be_wrong(monkeypatch):
    """With one question and four lags there are 24 of them for two people: 180 equal pairs of 1,000 are no proof."""
    alike = Alike("e", 180, 1000, 100, 1000)
    assert (alike.excessive(0.01), alike.excessive(0.01 / 24)) == (True, False)
    monkeypatch.setattr(verdict.repeats, "lags_of", lambda *given: 4)
    monkeypatch.setattr(verdict.repeats, "coins_within", lambda *given: [alike])
    assert list(verdict._lag_findings({"questions": [{}]}, None, 0.01)) == []
    assert len(list(verdict._lag_findings({"questions": [{}]}, None, 1.0))) == 2


def test_of_many_findings_of_one_kind_two_are_told_and_the_rest_counted():
    told = [
        (one.code, one.text) for one in _first_of_each([Finding("a", "1"), *[Finding("b", str(n)) for n in range(5)]])
    ]
    assert told == [("a", "1"), ("b", "0"), ("b", "1"), ("b", "and 3 further findings of this kind")]
    three = [Finding("a", str(n)) for n in range(3)]
    assert [one.text for one in _first_of_each(three)] == ["0", "1", "and 1 further findings of this kind"]


def test_a_report_names_every_check_and_no_text_of_the_client_breaks_its_tables():
    events = SEEN.bounded(0.01), replace(SEEN, name="a|b", bound=0.1), replace(SEEN, name="unbounded", bound=-np.inf)
    audited = Audit(1.0, 2.0, 9, (), 0, 18, events, (Finding("seed-guessed", "x | y\n| z"),), Floor(None, 1.0, None))
    text_of = markdown(audited, campaign(3), "run | me\n# now")
    assert "| client | `run \\| me # now` |" in text_of
    assert "* `seed-guessed`: x \\| y \\| z\n" in text_of
    assert "| a\\|b | 60 of 100, 20 of 100 |" in text_of
    assert "unbounded" not in text_of
    assert text_of.count("| held |") + text_of.count("| **broken** |") == len(verdict.CHECKS)
    assert text_of.count("| **broken** |") == 1


@pytest.mark.parametrize(
    ("scope", "others", "code"),
    [
        (WHOLE, 5, "loss-above-claim"),
        (BLOCK, 5, "answer-above-share"),
        (SIDE, 5, "tells-beside-the-answer"),
        (COMPANY, 5, "tells-of-others-before"),
        (ALONE, 5, "loss-above-claim"),
        (WHOLE, 0, "impossible-report"),
        (BLOCK, 0, "impossible-report"),
        (SIDE, 0, "tells-beside-the-answer"),
        (COMPANY, 0, "tells-of-others-before"),
        (ALONE, 0, "loss-above-claim"),
    ],
)
def test_a_loss_above_the_claim_is_told_by_the_code_of_what_lost_it(scope, others, code):
    event = replace(SEEN, scope=scope, others=others, bound=1.5)
    assert [one.code for one in verdict._loss_findings([event])] == [code]
    assert list(verdict._loss_findings([replace(event, bound=0.99)])) == []


@pytest.mark.parametrize("change", [-1, 1])
def test_a_client_that_answers_other_than_line_by_line_is_no_client(change):
    people = people_of(json.loads(campaign(3)), np.random.default_rng(1))[:2]

    def client(document, asked, home):
        answers = Vectorised(1)(document, asked)
        return answers[:-1] if change < 0 else [*answers, answers[0]]

    with pytest.raises(ChildProcessError, match=r"the client answered \d+ of \d+ lines"):
        _ask(campaign(3), client, people, [2, 2], False)
