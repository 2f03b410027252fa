"""What the audit takes a record's item for is what a device encodes, where no coins take part."""

from __future__ import annotations

import json

import pytest
from audited_campaigns import campaign
from exact_coins import SeededCoins

from ldp_aggregator.audit import Person
from ldp_aggregator.audit.searching.tight_events import item_of
from ldp_client.answering import encode
from protocols import Campaign

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
                    assert item == encode(parsed, question, record, class_index, SeededCoins(1))
                    found.append(item)
    assert len(set(found)) >= min(5, parsed.questions[-1].domain_size)


def test_who_holds_no_number_is_in_the_last_cell_of_the_class():
    document = json.loads(OPEN_SIGNS)
    items = [item_of(document, document["questions"][1], Person({}, label)) for label in ("c0", "c1")]
    assert items == [2, 5]
    complete = json.loads(SIGNS)
    assert item_of(complete, complete["questions"][1], Person({}, "c0")) is None
