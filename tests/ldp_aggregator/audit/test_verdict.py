"""Parts of an audit: who is asked in which order, what each event may be wrong with, and what the whole comes to."""

import json
from dataclasses import replace

import numpy as np
import pytest
from audited_campaigns import campaign
from drafts import draft, text
from sound_clients import Vectorised

from ldp_aggregator.audit.asking.people import people_of
from ldp_aggregator.audit.power import Floor
from ldp_aggregator.audit.searching.events import BLOCK, COMPANY, WHOLE, Event
from ldp_aggregator.audit.verdict import Audit, _ask, _bounded, _stated
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
