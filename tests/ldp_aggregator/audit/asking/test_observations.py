"""What is read off uploads: every byte stands somewhere, and what differs in anything else than ids and payloads has
another shape.
"""

import itertools
import json
import math
import os
import random
from functools import partial

import msgpack
import numpy as np
import pytest
from audited_campaigns import campaign
from drafts import number, text
from evaluated import U, V, draft, evaluation, model
from exact_coins import SeededCoins

from ldp_aggregator.audit import Person, UnreadableRecord
from ldp_aggregator.audit.asking.features import feature_of
from ldp_aggregator.audit.asking.observations import Seen, hashed, read_tables
from ldp_aggregator.audit.asking.people import drawn_people, key_of, people_of
from ldp_aggregator.audit.searching.comparisons import Chosen, Claims, columns_of, search
from ldp_aggregator.audit.searching.events import SIDE, WHOLE
from ldp_aggregator.audit.searching.tight_events import answer_of, item_of
from ldp_aggregator.audit.seeds import followed
from ldp_client import answering
from ldp_protocols import SYSTEM_COINS, Campaign

DRAWN = 24
MOST_PEOPLE = 72
RANGES = 8


DOCUMENT = {
    "label": {"classes": ["a", "b", "c"]},
    "features": [text("colour", *map(str, range(40))), number("size", high=10, bins=None)],
}


def upload(number, payload, version=1, identifier=None):
    return msgpack.packb([version, [[number, os.urandom(16) if identifier is None else identifier, payload]]])


def test_every_byte_of_an_upload_is_header_id_or_payload_and_there_is_a_column_for_everything():
    sent = msgpack.packb([1, [[0, b"i" * 16, b"pp"], [3, b"j" * 16, b"q"]]])
    (table,) = read_tables([(sent,)])
    assert table.shape.questions == (0, 3)
    assert table.payloads.tobytes() == b"ppq"
    assert table.ids.tobytes() == b"i" * 16 + b"j" * 16
    assert len(table.shape.header) + table.ids.size + table.payloads.size == len(sent)
    (table,) = read_tables([(upload(0, bytes(8)),), (upload(0, bytes(range(8))),)])
    columns = list(columns_of(table, np.ones(2, dtype=np.bool_)))
    names = {column.name for column in columns}
    assert {"byte 7", "id: byte 15", "range of word 1", "fineness of double 0", "parity of the set bits"} <= names
    assert all(column.codes.max() < column.values for column in columns)


@pytest.mark.parametrize(
    "other",
    [
        (upload(0, b"x", version=2),),
        (upload(1, b"x"),),
        (upload(0, b"xx"),),
        (upload(0, b"x") + b"\0",),
        (upload(0, b"x"), upload(0, b"x")),
        (),
        (msgpack.packb([1, [[0, os.urandom(16), b"x", None]]]),),
    ],
)
def test_anything_but_ids_and_payloads_makes_another_shape(other):
    alike = [(upload(0, b"x"),), (upload(0, b"y"),)]
    assert len(read_tables(alike)) == 1
    assert len(read_tables([*alike, other])) == 2


def test_what_cannot_be_read_is_seen_as_it_is_and_an_error_where_nothing_can_and_many_headers_lose_no_upload():
    garbage = b"\xc1" * 21
    assert sum(len(table.rows) for table in read_tables([(upload(0, b"x"),), (garbage,)])) == 2
    with pytest.raises(ChildProcessError, match="not an upload: c1c1"):
        read_tables([(garbage,)])
    answers = [(upload(0, b"x", version=number),) for number in range(100)]
    assert sum(len(table.rows) for table in read_tables(answers)) == 100


def test_a_hash_tells_rows_apart():
    rows = np.random.default_rng(1).integers(0, 256, (5000, 11), dtype=np.uint8)
    assert len(np.unique(hashed(rows))) == len(np.unique(rows, axis=0))
    assert (hashed(rows) == hashed(rows.copy())).all()


def found_between(one, other, trials=400):
    """The best events, of two people whose uploads are made by functions of a generator."""
    rng = random.Random(1)
    answers = [(make(rng),) for make in (one, other) for _ in range(trials)]
    person = np.repeat([0, 1], trials)
    seen = Seen(2, person, (np.arange(2 * trials) % trials >= trials // 2).astype(np.int64), read_tables(answers))
    chosen = Chosen()
    search([Person({}, "a"), Person({}, "b")], seen, Claims(1.0, lambda _: 1.0), chosen)
    return [event.bounded(1e-4) for scope in (WHOLE, SIDE) for event in chosen.of(scope)]


def with_parity(secret, rng):
    value = rng.randrange(1 << 15)
    return upload(0, (2 * value + (value.bit_count() + secret) % 2).to_bytes(2, "little"))


def keyed(secret, rng):
    key = rng.randbytes(16)
    return upload(0, bytes([key[5] ^ secret]), identifier=key)


def remaindered(secret, rng):
    number = rng.randrange(1 << 126)
    return upload(0, b"x", identifier=(number - number % 3 + secret).to_bytes(16, "little"))


def twofold(secret, rng):
    first = rng.randbytes(2)
    second = bytes([first[0] ^ secret, rng.randrange(256)])
    return msgpack.packb([1, [[0, rng.randbytes(16), first], [1, rng.randbytes(16), second]]])


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("a byte", lambda secret, rng: upload(0, bytes([secret, rng.randrange(256)]))),
        ("the parity", with_parity),
        ("the order", lambda secret, rng: upload(0, bytes(sorted(rng.sample(range(256), 3), reverse=secret)))),
        ("the length", lambda secret, rng: upload(0, rng.randbytes(2 + secret))),
        ("a byte of the id", lambda secret, rng: upload(0, b"x", identifier=bytes([secret]) + rng.randbytes(15))),
        ("the id as a key", keyed),
        ("a remainder of the id", remaindered),
        ("two answers together", twofold),
        ("the version", lambda secret, rng: upload(0, b"x", version=1 + secret)),
    ],
)
def test_the_search_sees(name, make):
    assert max(event.bound for event in found_between(partial(make, 0), partial(make, 1))) > 2, name


def test_the_search_finds_nothing_where_there_is_nothing():
    found = found_between(*[lambda rng: upload(0, rng.randbytes(8))] * 2, 2000)
    assert max(event.bound for event in found) < 0.1


def test_people_are_all_who_matter_and_their_lines_are_json_for_any_language():
    people = people_of(DOCUMENT, np.random.default_rng(1))
    assert len({key_of(person) for person in people}) == len(people) <= MOST_PEOPLE
    assert {person.label for person in people} == {"a", "b", "c"}
    records = [person.record for person in people]
    readable = [record for record in records if not isinstance(record, UnreadableRecord)]
    assert len({record.get("colour") for record in readable if isinstance(record.get("colour"), str)}) >= 16
    numbers = [record["size"] for record in readable if type(record.get("size")) in (int, float)]
    assert {0, 10, 2.5, 5.0, 7.5, math.inf, -math.inf} <= set(numbers)
    assert any(math.isnan(number) for number in numbers)
    assert max(number for number in numbers if math.isfinite(number)) > 100
    assert {} in readable
    assert any("colour" in record and "size" not in record for record in readable)
    assert any("size" in record and "colour" not in record for record in readable)
    assert any(isinstance(record.get("size"), list) for record in readable)
    assert len(records) - len(readable) >= 3
    odd = {word for person in people for word in person.to_json().get("odd", {}).values()}
    assert odd == {"nan", "infinity", "-infinity", "unreadable"}


def test_an_unreadable_record_raises_where_it_is_read():
    record = UnreadableRecord({"size": 1}, ["colour"])
    assert record.get("size") == record["size"] == 1
    for read in (record.get, record.__getitem__):
        with pytest.raises(RuntimeError, match="cannot be read"):
            read("colour")


def test_words_of_a_mersenne_twister_follow_from_those_before_and_others_do_not():
    twister = random.Random(5)
    outputs = np.array([twister.getrandbits(32) for _ in range(2000)], dtype=np.uint32)
    assert followed(outputs) == 2000 - 624
    assert followed(np.random.default_rng(5).integers(0, 2**32, 20_000, dtype=np.uint32)) == 0
    assert followed(outputs[:624]) == 0


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


def test_of_bins_with_edges_the_middles_are_asked():
    uneven = feature_of({**number("x", 0, 100, bins=5), "edges": [0, 1, 3, 10, 50, 100]})
    asked = {value for seed in range(20) for value in uneven.between(np.random.default_rng(seed))}
    assert asked == {2.0, 6.5, 30.0}


def test_nobody_is_drawn_who_is_asked_in_any_case_and_everything_of_very_many_features_is():
    document = json.loads(campaign(2))
    asked = people_of(document, np.random.default_rng(1))
    keys = [key_of(person) for person in [*asked, *drawn(document, 2, asked)]]
    assert len(set(keys)) == len(keys)
    document = json.loads(campaign(*[3] * 40))
    assert all(len(person.record) == 40 for person in drawn(document, 1))


OPEN_SIGNS, SIGNS = (campaign(numbers=1, label=1, continuous="sign", missing=missing) for missing in (True, False))
RECORDS = [{"x0": 0}, {"x0": 10}, {}, {"f0": "0", "f1": "1"}, {"f0": "1", "f1": "0"}]
"""A number at both ends and missing, two values, and everything missing."""


@pytest.mark.parametrize(
    "document",
    [OPEN_SIGNS, SIGNS, campaign(3, 2, label=1), campaign(3, 2, label=1, missing=True)],
    ids=["open signs", "signs", "pairs", "open pairs"],
)
def test_an_item_is_that_of_the_device(document):
    parsed, found = Campaign.parse(document.encode()), []
    for record in RECORDS:
        for class_index, label in enumerate(parsed.label.classes):
            for asked, question in zip(json.loads(document)["questions"], parsed.questions, strict=True):
                item = item_of(json.loads(document), asked, Person(record, label))
                if item is not None:
                    assert item == answering.encode(parsed, question, record, class_index, SeededCoins(1))
                    found.append(item)
    assert len(set(found)) >= min(5, parsed.questions[-1].domain_size)


@pytest.mark.parametrize("seed", range(10))
def test_the_answers_about_a_model_are_those_of_the_device(seed):
    rng = np.random.default_rng(seed)
    told = [{**one, "likelihood": rng.dirichlet(np.ones(len(one["values"])), 2).T.tolist()} for one in (U, V)]
    parsed = Campaign.compile(draft(asks="score", evaluation={"model": model(*told)}))
    document, known = json.loads(parsed.document), 0
    for u, v, (place, label) in itertools.product(U["values"], V["values"], enumerate("ab")):
        for asked in document["questions"]:
            found = answer_of(document, asked, Person({"u": u, "v": v}, label))
            question = (
                parsed.questions[asked["question"]]
                if "question" in asked
                else next(one for one in parsed.questions if one.kind == asked["kind"])
            )
            if found is not None:
                known += 1
                assert found == answering.item_of(parsed, question, {"u": u, "v": v}, place, SYSTEM_COINS)
    assert known > 20


def test_what_is_not_known_of_an_answer_is_left_open():
    document = json.loads(evaluation().document)
    for person in (Person({"u": "9"}, "a"), Person({"u": 1.5}, "a")):
        assert answer_of(document, document["questions"][0], person) is None
    complete = json.loads(SIGNS)
    assert item_of(complete, complete["questions"][1], Person({}, "c0")) is None
