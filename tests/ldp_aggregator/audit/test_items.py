"""What the audit takes a record's item for is what a device encodes, where no coins take part."""

from __future__ import annotations

import json

import pytest
from exact_coins import SeededCoins
from mutants_around import categories, number

from ldp_aggregator.audit import Person
from ldp_aggregator.audit.searching.tight_events import item_of
from ldp_client.answering import encode
from protocols import Campaign

RECORDS = [{"x": 0}, {"x": 10}, {}, {"f0": "0", "f1": "1"}, {"f0": "1", "f1": "0"}]
"""A number at both ends and missing, two values, and everything missing."""


@pytest.mark.parametrize(
    "document",
    [number(missing=True), number(), categories([3, 2]), categories([3, 2], missing=True)],
    ids=["open signs", "signs", "pairs", "open pairs"],
)
def test_an_item_is_that_of_the_device(document):
    campaign, found = Campaign.parse(document.encode()), []
    for record in RECORDS:
        for class_index, label in enumerate(campaign.label.classes):
            for asked, question in zip(json.loads(document)["questions"], campaign.questions, strict=True):
                item = item_of(json.loads(document), asked, Person(record, label))
                if item is not None:
                    assert item == encode(campaign, question, record, class_index, SeededCoins(1))
                    found.append(item)
    assert len(set(found)) >= min(5, campaign.questions[-1].domain_size)


def test_who_holds_no_number_is_in_the_last_cell_of_the_class():
    document = json.loads(number(missing=True))
    items = [item_of(document, document["questions"][1], Person({}, label)) for label in ("c0", "c1")]
    assert items == [2, 5]
    complete = json.loads(number())
    assert item_of(complete, complete["questions"][1], Person({}, "c0")) is None
