"""Campaigns without a label: one class, of which everybody is; questions of a value alone, and of two together."""

import json

import pytest
from drafts import draft, number, text

from ldp_client import perturb
from ldp_client.problems import record_problems
from ldp_protocols import Campaign, DraftError, RecordError
from ldp_protocols.document.questions import JOINT, PAIR, SQUARE, VALUE
from ldp_protocols.document.schema import NO_LABEL
from ldp_protocols.verification import verify

FEATURES = [text("os", "a", "b", "c"), text("version", "1", "2", missing=True), number("size", bins=4), number("age")]
DRAFT = draft(*FEATURES, label=None, pairs=[["os", "version"], ["size", "os"]])


def test_a_question_is_about_a_value_alone_and_a_pair_about_the_cells_of_both():
    campaign = Campaign.compile(DRAFT)
    assert (campaign.asks, campaign.label, bool(campaign.label)) == ("statistics", NO_LABEL, False)
    asked = [(one.kind, one.feature, one.other, one.group, one.domain_size) for one in campaign.questions]
    assert asked[:3] == [(PAIR, "os", None, 1, 3), (PAIR, "version", None, 2, 3), (PAIR, "size", None, 3, 4)]
    assert [one[:4] for one in asked[3:5]] == [(VALUE, "age", None, 4), (SQUARE, "age", None, 4)]
    assert asked[5:] == [(JOINT, "os", "version", 5, 9), (JOINT, "size", "os", 6, 12)]
    assert verify(campaign).holds
    document = json.loads(campaign.document)
    assert not {"label", "pairs"} & document.keys(), "a document has pairs as questions"
    assert Campaign.parse(campaign.document, campaign.id) == campaign


def test_answers_of_all_groups_divide_epsilon_among_features_and_pairs():
    campaign = Campaign.compile(DRAFT | {"privacy": {"epsilon": 3.0, "answers": "all"}})
    assert len(campaign.pools) == len(FEATURES) + 2
    assert campaign.realised_epsilon <= 3.0
    assert all(0.49 < one.epsilon <= 0.5 for one in campaign.questions)


def test_code_that_gives_a_label_is_told_to_leave_it_out_before_anything_is_drawn():
    campaign = Campaign.compile(DRAFT)
    assert len(perturb(campaign, {"os": "a"})) == 1
    for label in ("yes", 0, False, float("nan")):
        with pytest.raises(RecordError, match="must be left out; the campaign has none") as refused:
            perturb(campaign, {"os": "a"}, label)
        assert refused.value.code == "undeclared-label"
    assert [str(one) for one in record_problems(campaign, {"os": "a", "size": 1, "age": 0.5}, "yes")] == [
        'the record: "yes" is a label; leave it out: the campaign has none'
    ]


@pytest.mark.parametrize(
    ("changes", "field", "told"),
    [
        ({"asks": "model"}, "label", "is missing, and asks is model; declare one, or ask for statistics"),
        ({"asks": "moments", "study": "s"}, "label", "is missing, and asks is moments"),
        ({"asks": "statistics", "label": {"name": "y", "classes": ["p", "q"]}}, "label", "must be left out"),
        ({"label": {"name": "y", "classes": ["p", "q"]}}, "pairs", "are of a campaign without a label"),
        ({"pairs": [["os", "os"]]}, "pairs[0]", "stands in the list twice"),
        ({"pairs": [["os", "version"], ["version", "os"]]}, "pairs[1]", "version and os stand in the list twice"),
        ({"pairs": [["os", "age"]]}, "pairs[0]", "'age' has no values to count; give it bins"),
        ({"pairs": [["os", "shoe"]]}, "pairs[0]", "'shoe' is not one of the declared features"),
        ({"pairs": [["os"]]}, "pairs[0]", "must be a list of 2 to 2 entries, not 1 entries"),
        ({"pairs": [7]}, "pairs[0]", "must be a list of 2 to 2 entries, not 7"),
        ({"pairs": "os"}, "pairs", "must be a list of 0 to 1000 entries"),
        ({"features": [FEATURES[0] | {"several": True}]}, "features[0].several", "no set is asked; declare a feature"),
        ({"features": [FEATURES[0] | {"several": False}], "pairs": []}, "features[0].several", "unknown key"),
        ({"projection": {}}, "projection", "method"),
    ],
)
def test_what_goes_with_a_label_alone_or_cannot_be_counted_is_refused(changes, field, told):
    with pytest.raises(DraftError) as refused:
        Campaign.compile(DRAFT | changes)
    assert told in str(refused.value)
    assert str(refused.value).startswith(field)


def test_pairs_have_bounds_of_their_own_and_all_together():
    wide = [text(name, *(f"v{value}" for value in range(300))) for name in ("a", "b", "c", "d", "e")]
    with pytest.raises(DraftError, match=r"pairs\[0\]: has 90000 cells, above 65536"):
        Campaign.compile(draft(*wide, label=None, pairs=[["a", "b"]]))
    some = [text(name, *(f"v{value}" for value in range(200))) for name in ("a", "b", "c", "d", "e")]
    pairs = [[one, other] for one in "abcd" for other in "bcde" if one < other]
    assert len(Campaign.compile(draft(*some, label=None, pairs=pairs[:6])).questions) == 11
    with pytest.raises(DraftError, match="pairs: all questions have 281000 cells, above 262144"):
        Campaign.compile(draft(*some, label=None, pairs=pairs[:7]))
    windows = {"from": "2027-01-04T00:00:00Z", "length": "P7D", "count": 10}
    with pytest.raises(DraftError, match="pairs: all questions have"):
        Campaign.compile(draft(*some, label=None, pairs=pairs[:1], windows=windows))
