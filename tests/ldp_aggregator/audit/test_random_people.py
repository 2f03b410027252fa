"""People who are drawn meet as many pairs of values as they can, and other ones every time."""

import json

import numpy as np
from audited_campaigns import campaign
from drafts import number

from ldp_aggregator.audit.asking.people import DRAWN, RANGES, drawn_people, key_of, people_of


def drawn(document, seed, asked=()):
    return drawn_people(document, asked, np.random.default_rng(seed))


def readable(people):
    return [person.record for person in people if not hasattr(person.record, "unreadable")]


def test_with_those_asked_in_any_case_they_hold_nearly_all_pairs_of_two_features_of_five_values():
    document = json.loads(campaign(5, 5, 4))
    wanted = {(f"'{one}'", f"'{other}'") for one in range(5) for other in range(5)}
    missed = []
    for seed in range(5):
        asked = people_of(document, np.random.default_rng(seed))
        records = readable([*asked, *drawn(document, seed, asked)])
        missed.append(wanted - {(repr(record.get("f0")), repr(record.get("f1"))) for record in records})
    assert max(map(len, missed)) <= 2
    assert not set.intersection(*missed[:2])


def test_of_many_values_each_audit_draws_others_and_no_part_of_a_numbers_range_is_left_out():
    document = json.loads(campaign(200))
    met = [{person.record["f0"] for person in drawn(document, seed)} for seed in range(3)]
    assert [len(values) for values in met] == [DRAWN] * 3
    assert len(set.union(*met)) > 2 * DRAWN
    document = {"label": {"classes": ["a", "b"]}, "features": [number("x", -10, 10, bins=None)]}
    for seed in range(5):
        numbers = [person.record["x"] for person in drawn(document, seed)]
        assert {int((x + 10) / 20 * RANGES) for x in numbers} == set(range(RANGES))


def test_between_its_ends_the_values_that_are_asked_in_turn_are_drawn_too():
    document = json.loads(campaign(40))
    first, second = (
        {
            value
            for record in readable(people_of(document, np.random.default_rng(seed)))
            if type(value := record.get("f0")) is str
        }
        for seed in range(2)
    )
    assert first != second
    assert {"0", "39"} <= first & second


def test_nobody_is_drawn_who_is_asked_in_any_case_and_everything_of_very_many_features_is():
    document = json.loads(campaign(2))
    asked = people_of(document, np.random.default_rng(1))
    keys = [key_of(person) for person in [*asked, *drawn(document, 2, asked)]]
    assert len(set(keys)) == len(keys)
    document = json.loads(campaign(*[3] * 60))
    assert all(len(person.record) == 60 for person in drawn(document, 1))
