"""Drafts with a crowd: the local epsilon that they leave open, and what is refused."""

import json

import pytest
from crowds import COLOUR, ISSUER, crowd_draft
from drafts import number

from ldp_protocols import Campaign, DraftError
from ldp_protocols.verification import verify


def test_a_draft_that_leaves_the_local_epsilon_open_gets_the_largest_that_keeps_the_promise():
    campaign = Campaign.compile(crowd_draft(most_local=None))
    assert (campaign.privacy.epsilon, campaign.privacy.release_every) == (4, 20_000)
    more = Campaign.compile(crowd_draft(most_local=16))
    assert 4.5 < more.privacy.epsilon < 6
    assert more.realised_epsilon <= more.privacy.epsilon
    above = {**more.privacy.to_json(), "epsilon": more.privacy.epsilon + 0.0002}
    with pytest.raises(DraftError, match="10000 mixed reports may reveal more than epsilon 1, delta 1e-09"):
        Campaign.compile(crowd_draft(most_local=None, privacy=above))


def test_a_document_says_both_numbers_and_compiles_to_itself():
    campaign = Campaign.compile(crowd_draft(promise={"expires": 90}, most_local=16))
    document = json.loads(campaign.document)
    assert document["privacy"]["crowd"] == {
        "epsilon": 1,
        "delta": 1e-9,
        "devices": 20_000,
        "honest": 0.5,
        "expires": 90,
    }
    assert "most_local" not in document["privacy"]
    again = {name: one for name, one in document.items() if name not in ("questions",)}
    assert Campaign.compile(again).id == campaign.id
    told = verify(campaign).to_json()
    assert told["holds"]
    assert told["crowd"] == {**document["privacy"]["crowd"], "holds": True}
    assert "crowd" not in verify(Campaign.compile(crowd_draft() | {"privacy": {"epsilon": 1}})).to_json()


def test_every_question_is_asked_by_direct_encoding_numbers_too():
    features = COLOUR, number("hours", 0, 60), number("steps", 0, 9, missing=True), number("age", 0, 99, bins=64)
    campaign = Campaign.compile(crowd_draft(*features, most_local=1))
    assert {question.mechanism.name for question in campaign.questions} == {"de"}
    assert {question.encoding for question in campaign.questions} == {"index", "sign"}


@pytest.mark.parametrize(
    ("change", "field", "told"),
    [
        ({"promise": {"epsilon": 0}}, "privacy.crowd.epsilon", "above 0"),
        ({"promise": {"delta": 1e-3}}, "privacy.crowd.delta", "from 1e-15 to 1e-06"),
        ({"promise": {"delta": 1e-9, "devices": 1 << 30}}, "privacy.crowd.delta", "to 9.31323e-10"),
        ({"promise": {"devices": 10}}, "privacy.crowd.devices", "from 100 to"),
        ({"promise": {"devices": None}}, "privacy.crowd.devices", "is missing"),
        ({"promise": {"devices": "many"}}, "privacy.crowd.devices", "an integer"),
        ({"promise": {"honest": 0}}, "privacy.crowd.honest", "above 0 and at most 1"),
        ({"promise": {"honest": 0.001, "devices": 100}}, "privacy.crowd.honest", "above 0"),
        ({"promise": {"honest": 1.01}}, "privacy.crowd.honest", "at most 1"),
        ({"promise": {"expires": 0}}, "privacy.crowd.expires", "from 1"),
        ({"promise": {"most": 1}}, "privacy.crowd.most", "unknown key"),
        ({"promise": {"without_issuer": "why"}}, "privacy.crowd.without_issuer", "null where there is an issuer"),
        ({"privacy": {"crowd": 5}}, "privacy.crowd", "must be an object"),
        ({"privacy": {"epsilon": 1}}, "privacy.most_local", "say one of two"),
        ({"most_local": 0}, "privacy.most_local", "above 0"),
        ({"most_local": 0.5}, "privacy.crowd.epsilon", "is 1, above the 0.5 that one answer reveals"),
        ({"most_local": "4"}, "privacy.most_local", "must be a number"),
        ({"privacy": {"answers": "all"}}, "privacy.answers", "must be one with a crowd"),
        ({"privacy": {"discrete": "oue"}}, "privacy.discrete", "must be auto or de with a crowd"),
        ({"privacy": {"continuous": "onebit"}}, "privacy.continuous", "must be auto or sign with a crowd"),
        ({"privacy": {"theta": 0.5}}, "privacy.theta", "must be null with a crowd"),
        ({"privacy": {"release_every": 10}}, "privacy.release_every", "must be 20000 with a crowd"),
        ({"gateway": None}, "gateway", "a relay mixes them"),
        ({"issuer": {**ISSUER, "tokens": 2}}, "issuer.tokens", "must be 1 with a crowd"),
        ({"issuer": {**ISSUER, "relay_key": None}}, "issuer.relay_key", "is missing with a crowd"),
        ({"windows": {"from": "2027-01-04T00:00:00Z", "length": "P7D", "count": 2}}, "windows", "null with a crowd"),
    ],
)
def test_a_crowd_that_nobody_could_keep_is_refused_by_its_field(change, field, told):
    with pytest.raises(DraftError, match=told) as caught:
        Campaign.compile(crowd_draft(**change))
    assert caught.value.field == field


def test_an_issuer_may_be_missing_where_the_author_says_why():
    without = crowd_draft(issuer=None)
    assert Campaign.compile(without).privacy.crowd.without_issuer
    del without["privacy"]["crowd"]["without_issuer"]
    with pytest.raises(DraftError, match=r"privacy\.crowd\.without_issuer") as caught:
        Campaign.compile(without)
    assert caught.value.field == "issuer"


def test_a_round_of_moments_has_no_crowd():
    with pytest.raises(DraftError, match="moments round") as caught:
        Campaign.compile(crowd_draft(number("hours", 0, 60), asks="moments", study="s"))
    assert caught.value.field == "privacy.crowd"
