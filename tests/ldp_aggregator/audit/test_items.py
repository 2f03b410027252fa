"""What the audit takes a record's item for is what a device encodes, where no coins take part; its answer about the
model of an evaluation is what the device's is, or unknown.
"""

import itertools
import json

import numpy as np
import pytest
from audited_campaigns import campaign
from evaluated import U, V, draft, evaluation, model
from exact_coins import SeededCoins

from ldp_aggregator.audit import Person
from ldp_aggregator.audit.searching.tight_events import answer_of, item_of
from ldp_client import answering
from protocols import SYSTEM_COINS, Campaign

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


def test_who_holds_no_number_is_in_the_last_cell_of_the_class():
    document = json.loads(OPEN_SIGNS)
    items = [item_of(document, document["questions"][1], Person({}, label)) for label in ("c0", "c1")]
    assert items == [2, 5]
    complete = json.loads(SIGNS)
    assert item_of(complete, complete["questions"][1], Person({}, "c0")) is None


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
