"""The audit's own reading of an evaluation round's model: what it answers is what the device does, or unknown."""

from __future__ import annotations

import json

import numpy as np
import pytest
from evaluated import FEATURES, U, V, draft, evaluation, model

from ldp_aggregator.audit.asking.black_box import Person
from ldp_aggregator.audit.searching.tight_events import answer_of
from ldp_client.answering import item_of
from protocols import SYSTEM_COINS, Campaign


@pytest.mark.parametrize("seed", range(10))
def test_the_answers_about_a_model_are_those_of_the_device(seed):
    rng = np.random.default_rng(seed)
    told = [{**one, "likelihood": rng.dirichlet(np.ones(len(one["values"])), 2).T.tolist()} for one in (U, V)]
    campaign = Campaign.compile(draft(asks="score", evaluation={"model": model(*told)}))
    document, known = json.loads(campaign.document), 0
    for u in FEATURES[0]["values"]:
        for v in FEATURES[1]["values"]:
            for place, label in enumerate("ab"):
                for asked in document["questions"]:
                    found = answer_of(document, asked, Person({"u": u, "v": v}, label))
                    question = (
                        campaign.questions[asked["question"]]
                        if "question" in asked
                        else next(one for one in campaign.questions if one.kind == asked["kind"])
                    )
                    if found is not None:
                        known += 1
                        assert found == item_of(campaign, question, {"u": u, "v": v}, place, SYSTEM_COINS)
    assert known > 20


def test_what_is_not_known_is_left_open():
    campaign = evaluation()
    document = json.loads(campaign.document)
    for person in (Person({"u": "9"}, "a"), Person({"u": 1.5}, "a")):
        assert answer_of(document, document["questions"][0], person) is None
