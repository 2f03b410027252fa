"""Drafts, documents, and what nobody gets past a device."""

from __future__ import annotations

import copy
import hashlib
import json
import time
from base64 import urlsafe_b64encode
from datetime import datetime, timezone
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols import Campaign, DocumentError, DraftError
from protocols.document.campaign import LARGEST_DOCUMENT
from protocols.document.schema import MOST_CAMPAIGN_CELLS
from protocols.exact.rationals import exact_epsilon

DRAFT = {
    "version": 1,
    "title": "Will a customer miss a payment?",
    "purpose": "credit-risk model 3",
    "label": {"name": "missed_payment", "classes": ["yes", "no"]},
    "features": [
        {"name": "age", "kind": "categorical", "values": ["young", "medium", "old"]},
        {"name": "income", "kind": "continuous", "low": 0, "high": 200000, "bins": 8},
        {"name": "hours", "kind": "continuous", "low": 0, "high": 100},
    ],
    "privacy": {"epsilon": 1.0, "answers": "one", "discrete": "auto", "continuous": "auto", "theta": 0.25},
    "projection": None,
    "study": None,
    "opens": None,
    "closes": "2027-01-01T00:00:00Z",
}

ABSENT = object()


def changed(document, place, value):
    """A deep copy with ``value`` at ``place``; ABSENT removes the key."""
    copied = copy.deepcopy(document)
    target = copied
    for step in place[:-1]:
        target = target[step]
    if value is ABSENT:
        del target[place[-1]]
    else:
        target[place[-1]] = value
    return copied


def draft_with(*place, value):
    return changed(DRAFT, place, value)


def attempt(read, kind):
    """What ``read`` returns and None, or None and the error of this kind; any other error passes."""
    try:
        return read(), None
    except kind as error:
        return None, error


def names(cases):
    """Readable test ids."""
    return [f"{number}-{'.'.join(map(str, place))}" for number, (place, *_) in enumerate(cases)]


def document_of(campaign):
    return json.loads(campaign.document)


def encoded(document):
    return json.dumps(document).encode()


# --- compiling -------------------------------------------------------------------------------------------------------


def test_a_draft_compiles_to_the_label_question_one_per_discrete_feature_and_two_per_gaussian_one():
    campaign = Campaign.compile(DRAFT)
    shapes = [(q.kind, q.feature, q.group, q.epsilon, q.weight) for q in campaign.questions]
    assert shapes == [
        ("label", None, 0, 1, 1),
        ("pair", "age", 1, 1, 1),
        ("pair", "income", 2, 1, 1),
        ("value", "hours", 3, 1, 1),
        ("square", "hours", 3, 1, 1),
    ]
    assert [q.domain_size for q in campaign.questions[:3]] == [2, 6, 16]
    assert [q.index for q in campaign.questions] == list(range(5))
    assert [len(group) for group in campaign.groups] == [1, 1, 1, 2]
    assert campaign.closes == datetime(2027, 1, 1, tzinfo=timezone.utc)


def test_the_document_is_the_draft_and_its_resolved_questions():
    document = document_of(Campaign.compile(DRAFT))
    for key in ("version", "title", "purpose", "projection", "study", "opens", "closes"):
        assert document[key] == DRAFT[key]
    for question in document["questions"]:
        assert question["mechanism"] != "auto"
        assert question["parameters"]


def test_the_id_is_the_sha256_of_the_document_in_base64url():
    campaign = Campaign.compile(DRAFT)
    digest = hashlib.sha256(campaign.document).digest()
    assert campaign.id == urlsafe_b64encode(digest).decode().rstrip("=")
    assert len(campaign.id) == 43


def test_the_same_draft_gives_the_same_document():
    assert Campaign.compile(DRAFT).document == Campaign.compile(copy.deepcopy(DRAFT)).document
    assert Campaign.compile(json.dumps(DRAFT)).id == Campaign.compile(json.dumps(DRAFT).encode()).id


def test_the_key_order_of_the_draft_does_not_matter():
    def reversed_keys(value):
        if isinstance(value, dict):
            return {key: reversed_keys(value[key]) for key in reversed(value)}
        return [reversed_keys(member) for member in value] if isinstance(value, list) else value

    assert list(reversed_keys(DRAFT)) != list(DRAFT)
    assert Campaign.compile(reversed_keys(DRAFT)).id == Campaign.compile(DRAFT).id


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("privacy", "epsilon"), 1),
        (("features", 2, "low"), 0.0),
        (("features", 2, "low"), -0.0),
        (("features", 2, "high"), 1e2),
        (("features", 2, "bins"), None),
        (("features", 0, "weight"), 1),
        (("label", "weight"), None),
        (("study",), ABSENT),
        (("privacy", "answers"), ABSENT),
    ],
)
def test_spelling_out_a_default_or_writing_a_number_differently_does_not_change_the_id(place, value):
    assert Campaign.compile(changed(DRAFT, place, value)).id == Campaign.compile(DRAFT).id


@pytest.mark.parametrize("answers", ["one", "all"])
def test_parsing_a_compiled_document_gives_the_same_campaign(answers):
    compiled = Campaign.compile(draft_with("privacy", "answers", value=answers))
    parsed = Campaign.parse(compiled.document, compiled.id)
    assert parsed == compiled
    assert document_of(parsed)["questions"] == [question.to_json() for question in parsed.questions]


@pytest.mark.parametrize("discrete", ["de", "sue", "oue", "she", "the", "ss"])
@pytest.mark.parametrize("continuous", ["laplace", "onebit", "sign"])
@pytest.mark.parametrize("answers", ["one", "all"])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1, 7.5])
def test_a_campaign_never_loses_more_than_its_epsilon(discrete, continuous, answers, epsilon):
    privacy = {"epsilon": epsilon, "answers": answers, "discrete": discrete, "continuous": continuous}
    campaign = Campaign.compile({**DRAFT, "privacy": privacy})
    promised = exact_epsilon(epsilon)
    worst = [max(question.loss() for question in group) for group in campaign.groups]
    assert campaign.loss == (sum(worst) if answers == "all" else max(worst))
    assert campaign.loss <= promised
    assert Fraction(campaign.realised_epsilon) <= Fraction(epsilon)
    if discrete != "the":
        assert promised - campaign.loss < promised / 10**9
    mechanisms = {question.kind: question.mechanism.name for question in campaign.questions}
    assert mechanisms["pair"] == discrete
    assert mechanisms["value"] == continuous or (continuous, campaign.questions[3].encoding) == ("sign", "sign")


def test_answering_everything_splits_epsilon_over_the_groups():
    campaign = Campaign.compile(draft_with("privacy", "answers", value="all"))
    assert {question.epsilon for question in campaign.questions} == {0.25}


def test_a_label_of_weight_zero_is_not_asked_alone():
    campaign = Campaign.compile(draft_with("label", "weight", value=0))
    assert [question.kind for question in campaign.questions] == ["pair", "pair", "value", "square"]
    assert [question.group for question in campaign.questions] == [1, 2, 3, 3]


def test_weights_of_the_draft_are_those_of_the_draw():
    weighted = draft_with("features", 0, "weight", value=5)
    assert [q.weight for q in Campaign.compile(changed(weighted, ("label", "weight"), 3)).questions] == [3, 5, 1, 1, 1]


# --- refused drafts --------------------------------------------------------------------------------------------------

REFUSED = [
    (("version",), ABSENT, "version", "integer from 1 to 1"),
    (("version",), 2, "version", "integer from 1 to 1"),
    (("version",), True, "version", "integer"),
    (("title",), "", "title", "non-empty text"),
    (("title",), "x" * 201, "title", "at most 200"),
    (("title",), "\ud800", "title", "surrogates"),
    (("title",), "a\x1b[2Jb", "title", "control characters"),
    (("purpose",), 5, "purpose", "text"),
    (("label",), None, "label", "object"),
    (("label", "name"), ABSENT, "label.name", "non-empty text"),
    (("label", "classes"), [], "label.classes", "2 to 1024"),
    (("label", "classes"), ["yes"], "label.classes", "2 to 1024"),
    (("label", "classes"), ["yes", "yes"], "label.classes", "twice"),
    (("label", "classes"), ["yes", 1], "label.classes[1]", "non-empty text"),
    (("label", "classes"), ["yes", "n" * 201], "label.classes[1]", "at most 200"),
    (("label", "weight"), -1, "label.weight", "integer from 0"),
    (("label", "weight"), 1 << 17, "label.weight", "65536"),
    (("features",), [], "features", "1 to 1000"),
    (("features",), {}, "features", "list"),
    (("features", 0), [], "features[0]", "object"),
    (("features", 0, "name"), "", "features[0].name", "non-empty text"),
    (("features", 0, "name"), "hours", "features[2].name", "features[0].name; names must be different"),
    (("features", 0, "name"), "missed_payment", "features[0].name", "label.name; names must be different"),
    (("features", 0, "kind"), "text", "features[0].kind", "categorical, continuous"),
    (("features", 0, "kind"), ["categorical"], "features[0].kind", "categorical, continuous"),
    (("features", 0, "values"), [], "features[0].values", "2 to 16384"),
    (("features", 0, "values"), ["young"], "features[0].values", "2 to 16384"),
    (("features", 0, "values"), "young", "features[0].values", "list"),
    (("features", 0, "values"), ["a", "b", "a"], "features[0].values", "every entry must be different"),
    (("features", 0, "values"), ["a", ""], "features[0].values[1]", "non-empty text"),
    (("features", 0, "bins"), 3, "features[0].bins", "the keys here are"),
    (("features", 0, "weight"), 0, "features[0].weight", "integer from 1"),
    (("features", 0, "weight"), 1.5, "features[0].weight", "integer from 1"),
    (("features", 1, "bins"), 1, "features[1].bins", "integer from 2"),
    (("features", 1, "bins"), 2.5, "features[1].bins", "integer from 2"),
    (("features", 1, "bins"), 1 << 15, "features[1].bins", "16384"),
    (("features", 2, "low"), ABSENT, "features[2].low", "number"),
    (("features", 2, "low"), "0", "features[2].low", "number"),
    (("features", 2, "low"), True, "features[2].low", "number"),
    (("features", 2, "low"), float("nan"), "features[2].low", "finite"),
    (("features", 2, "low"), float("-inf"), "features[2].low", "finite"),
    (("features", 2, "high"), float("inf"), "features[2].high", "finite"),
    (("features", 2, "high"), 10**400, "features[2].high", "finite"),
    (("features", 2, "high"), 10**5000, "features[2].high", "finite"),
    (("features", 2, "low"), 100, "features[2].low", "below high"),
    (("features", 2, "low"), 101, "features[2].low", "below high"),
    (("features", 2, "high"), 1e300, "features[2].high", "choose other units"),
    (("features", 2, "high"), 1e-200, "features[2].high", "choose other units"),
    (("features", 2, "values"), ["a", "b"], "features[2].values", "the keys here are"),
    (("privacy",), ABSENT, "privacy", "object"),
    (("privacy", "epsilon"), ABSENT, "privacy.epsilon", "number"),
    (("privacy", "epsilon"), 0, "privacy.epsilon", "above 0"),
    (("privacy", "epsilon"), -1, "privacy.epsilon", "above 0"),
    (("privacy", "epsilon"), float("nan"), "privacy.epsilon", "finite"),
    (("privacy", "epsilon"), float("inf"), "privacy.epsilon", "finite"),
    (("privacy", "epsilon"), 1e-9, "privacy.epsilon", "below 1e-06 nothing can be learned"),
    (("privacy", "answers"), "some", "privacy.answers", "one, all"),
    (("privacy", "discrete"), "grr", "privacy.discrete", "de, sue, oue"),
    (("privacy", "continuous"), "gauss", "privacy.continuous", "laplace, onebit, sign"),
    (("privacy", "theta"), 0, "privacy.theta", "above 0 and at most 1"),
    (("privacy", "theta"), 1.01, "privacy.theta", "above 0 and at most 1"),
    (("privacy", "delta"), 0.1, "privacy.delta", "the keys here are"),
    (("study",), "", "study", "non-empty text"),
    (("study",), 7, "study", "text"),
    (("opens",), "2028-01-01T00:00:00Z", "closes", "later than opens"),
    (("closes",), "2027-01-01", "closes", "2027-01-01T00:00:00Z"),
    (("closes",), "2027-01-01T00:00:00+01:00", "closes", "2027-01-01T00:00:00Z"),
    (("closes",), "2027-W01-1T00:00:00Z", "closes", "2027-01-01T00:00:00Z"),
    (("closes",), "2027-02-30T00:00:00Z", "closes", "2027-01-01T00:00:00Z"),
    (("closes",), 1798761600, "closes", "2027-01-01T00:00:00Z"),
    (("questions",), [], "questions", "unknown key"),
    (("epsilon",), 1, "epsilon", "unknown key"),
]


@pytest.mark.parametrize(("place", "value", "field", "right"), REFUSED, ids=names(REFUSED))
def test_a_wrong_draft_is_refused_with_the_field_and_what_would_be_right(place, value, field, right):
    with pytest.raises(DraftError) as refused:
        Campaign.compile(changed(DRAFT, place, value))
    assert refused.value.code == "invalid-draft"
    assert refused.value.field == field
    assert right in refused.value.problem
    assert str(refused.value).startswith(f"{field}: ")


def test_bins_narrower_than_a_double_are_refused():
    draft = draft_with(
        "features", 1, value={"name": "t", "kind": "continuous", "low": 2**52, "high": 2**52 + 8, "bins": 9}
    )
    with pytest.raises(DraftError, match="narrower than a double resolves") as refused:
        Campaign.compile(draft)
    assert refused.value.field == "features[1].bins"


@given(
    st.floats(min_value=-1e150, max_value=1e150),
    st.floats(min_value=1e-140, max_value=1e149),
    st.integers(min_value=2, max_value=500),
)
def test_every_bin_of_an_accepted_feature_can_be_reached(low, span, bins):
    feature = {"name": "t", "kind": "continuous", "low": low, "high": low + span, "bins": bins}
    campaign, refused = attempt(lambda: Campaign.compile(draft_with("features", value=[feature])), DraftError)
    if refused:
        assert refused.field.startswith("features[0].")
        return
    edges = campaign.features[0].inner_edges
    assert len(edges) == bins - 1
    assert all(first < second for first, second in zip((low, *edges), (*edges, low + span), strict=True))


def test_too_many_cells_in_one_question_or_in_all_are_refused():
    def feature(name, bins):
        return {"name": name, "kind": "continuous", "low": 0, "high": 1, "bins": bins}

    classes = [str(number) for number in range(8)]
    draft = draft_with("label", "classes", value=classes)
    with pytest.raises(DraftError, match="at most 65536") as refused:
        Campaign.compile({**draft, "features": [feature("x", 8193)]})
    assert refused.value.field == "features[0].bins"
    with pytest.raises(DraftError, match=str(MOST_CAMPAIGN_CELLS)) as refused:
        Campaign.compile({**draft, "features": [feature(f"x{number}", 8192) for number in range(4)]})
    assert refused.value.field == "features"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff{}", "not JSON in UTF-8"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b"[]", "must be an object"),
        (b"null", "must be an object"),
        (b'{"title": "a", "title": "b"}', "stands twice"),
        (b'{"privacy": {"epsilon": NaN}}', "NaN is not JSON"),
        (b'{"privacy": {"epsilon": 1e999}}', "finite"),
        (b"[" * 100_000, "not JSON"),
        (b"1" * 10_000, "not JSON"),
    ],
)
def test_text_that_is_no_json_object_is_refused(text, problem):
    with pytest.raises(DraftError, match=problem):
        Campaign.compile(text)
    with pytest.raises(DocumentError, match=problem) as refused:
        Campaign.parse(text)
    assert refused.value.code == "invalid-document"


def test_a_mapping_that_no_json_text_could_hold_is_refused_as_a_draft():
    loop: list[object] = []
    loop.append(loop)
    for value in (loop, {(1, 2): 3}, {1, 2}, 10**5000, b"bytes", float("nan")):
        with pytest.raises(DraftError):
            Campaign.compile({**DRAFT, "label": value})


# --- tampered documents ----------------------------------------------------------------------------------------------

EVERY_KIND = {**DRAFT, "privacy": {"epsilon": 1.0, "discrete": "oue", "continuous": "laplace"}}
DOCUMENT = document_of(Campaign.compile(EVERY_KIND))
Q = "questions"
HALF = str(1 << 63)

TAMPERED = [
    ((Q, 0, "parameters", "q"), "1", "loss-above-epsilon"),
    ((Q, 1, "parameters", "p"), str((1 << 64) - 1), "loss-above-epsilon"),
    ((Q, 3, "parameters", "scale"), str(1 << 40), "loss-above-epsilon"),
    ((Q, 3, "parameters", "grid"), 13, "invalid-parameters"),
    ((Q, 3, "parameters", "scale"), "1" * 30, "invalid-parameters"),
    ((Q, 1, "parameters", "p"), "1", "invalid-parameters"),
    ((Q, 1, "parameters", "p"), -1, "invalid-parameters"),
    ((Q, 1, "parameters", "p"), 0.5, "invalid-parameters"),
    ((Q, 1, "parameters", "p"), ABSENT, "invalid-parameters"),
    ((Q, 1, "parameters", "r"), "1", "invalid-parameters"),
    ((Q, 1, "parameters"), [], "invalid-document"),
    ((Q, 1, "epsilon"), 0.5, "loss-above-epsilon"),
    ((Q, 1, "epsilon"), 0.9999999, "loss-above-epsilon"),
    ((Q, 1, "epsilon"), 0, "loss-above-epsilon"),
    ((Q, 1, "epsilon"), -1, "loss-above-epsilon"),
    ((Q, 1, "epsilon"), "1", "invalid-document"),
    (("privacy", "epsilon"), 0.5, "loss-above-epsilon"),
    (("privacy", "epsilon"), 0.9999999, "loss-above-epsilon"),
    (("privacy", "answers"), "all", "loss-above-epsilon"),
    ((Q, 1, "domain_size"), 7, "invalid-document"),
    ((Q, 1, "domain_size"), 1 << 40, "invalid-document"),
    ((Q, 1, "domain_size"), 0, "invalid-document"),
    ((Q, 1, "group"), 2, "invalid-document"),
    ((Q, 1, "group"), 0, "invalid-document"),
    ((Q, 1, "group"), 10**6, "invalid-document"),
    ((Q, 1, "group"), -1, "invalid-document"),
    ((Q, 0, "group"), 1, "invalid-document"),
    ((Q, 1, "feature"), "income", "invalid-document"),
    ((Q, 1, "feature"), "secret", "invalid-document"),
    ((Q, 1, "feature"), None, "invalid-document"),
    ((Q, 1, "kind"), "value", "invalid-document"),
    ((Q, 1, "kind"), "label", "invalid-document"),
    ((Q, 1, "kind"), "product", "invalid-document"),
    ((Q, 1, "encoding"), "moment", "invalid-document"),
    ((Q, 1, "encoding"), "sign", "invalid-document"),
    ((Q, 3, "encoding"), "index", "invalid-document"),
    ((Q, 3, "encoding"), "sign", "invalid-document"),
    ((Q, 3, "kind"), "square", "invalid-document"),
    ((Q, 1, "mechanism"), "laplace", "invalid-document"),
    ((Q, 1, "mechanism"), "rappor", "unknown-mechanism"),
    ((Q, 1, "mechanism"), "de", "invalid-parameters"),
    ((Q, 1, "weight"), 0, "invalid-document"),
    ((Q, 1, "weight"), -1, "invalid-document"),
    ((Q, 1, "weight"), 1 << 17, "invalid-document"),
    ((Q, 1, "weight"), True, "invalid-document"),
    ((Q, 1, "comment"), "hi", "invalid-document"),
    ((Q, 1), None, "invalid-document"),
    ((Q,), [], "invalid-document"),
    ((Q,), ABSENT, "invalid-document"),
    ((Q,), DOCUMENT[Q] + DOCUMENT[Q][:1], "invalid-document"),
    (("features", 0, "values"), ["young", "old"], "invalid-document"),
    (("features", 2, "bins"), 4, "invalid-document"),
    (("label", "classes"), ["yes", "no", "maybe"], "invalid-document"),
    (("version",), 2, "invalid-document"),
    (("comment",), "hi", "invalid-document"),
]


def test_the_untampered_document_is_accepted():
    assert Campaign.parse(encoded(DOCUMENT)).title == DRAFT["title"]


@pytest.mark.parametrize(("place", "value", "code"), TAMPERED, ids=names(TAMPERED))
def test_a_tampered_document_is_refused_with_its_code(place, value, code):
    with pytest.raises(DocumentError) as refused:
        Campaign.parse(encoded(changed(DOCUMENT, place, value)))
    assert refused.value.code == code


def test_a_document_whose_bytes_are_not_the_campaign_ids_is_refused():
    campaign = Campaign.compile(DRAFT)
    assert Campaign.parse(campaign.document, campaign.id).id == campaign.id
    for document in (campaign.document + b" ", campaign.document[:-1], b"", Campaign.compile(EVERY_KIND).document):
        with pytest.raises(DocumentError, match="SHA-256") as refused:
            Campaign.parse(document, campaign.id)
        assert refused.value.code == "wrong-hash"


def test_a_duplicate_key_and_a_nan_anywhere_in_a_document_are_refused():
    text = Campaign.compile(DRAFT).document.decode()
    for before, after in (
        ('"weight":1', '"weight":1,"weight":1'),
        ('"epsilon":1', '"epsilon":NaN'),
        ('"epsilon":1', '"epsilon":Infinity'),
        ('"epsilon":1', '"epsilon":1e400'),
    ):
        assert before in text
        with pytest.raises(DocumentError) as refused:
            Campaign.parse(text.replace(before, after, 1).encode())
        assert refused.value.code == "invalid-document"


@pytest.mark.parametrize("answers", ["one", "all"])
def test_questions_that_keep_their_own_epsilon_but_break_the_total_are_refused(answers):
    """The parameters are those of epsilon 1; the total says a little less than what they add up to."""
    privacy = {"epsilon": 1.0, "discrete": "oue", "continuous": "laplace", "answers": answers}
    document = document_of(Campaign.compile({**DRAFT, "privacy": privacy}))
    for promised, accepted in ((1.0, True), (0.999, False)):
        tampered = encoded(changed(document, ("privacy", "epsilon"), promised))
        if accepted:
            assert Campaign.parse(tampered).realised_epsilon <= promised
        else:
            with pytest.raises(DocumentError, match="declared total") as refused:
                Campaign.parse(tampered)
            assert refused.value.code == "loss-above-epsilon"


def test_with_all_answers_the_worst_question_of_every_group_counts():
    """Doubling the loss of only the second question of the Gaussian feature must not go unnoticed."""
    document = document_of(
        Campaign.compile({**DRAFT, "privacy": {"epsilon": 1.0, "answers": "all", "continuous": "laplace"}})
    )
    square = document[Q][4]
    assert square["kind"] == "square"
    louder = changed(square, ("parameters", "scale"), str(int(square["parameters"]["scale"]) // 2))
    louder["epsilon"] = 2 * louder["epsilon"]
    with pytest.raises(DocumentError) as refused:
        Campaign.parse(encoded(changed(document, (Q, 4), louder)))
    assert refused.value.code == "loss-above-epsilon"


# --- documents made to waste a reader's time -------------------------------------------------------------------------


def seconds_to_refuse(document):
    """Processor time, so that a busy machine fails nothing."""
    start = time.process_time()
    with pytest.raises(DocumentError):
        Campaign.parse(document)
    return time.process_time() - start


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(b" " * (LARGEST_DOCUMENT + 1), id="too-long"),
        pytest.param(b"[" * LARGEST_DOCUMENT, id="deeply-nested"),
        pytest.param(
            b"{" + b",".join(b'"%d":0' % n for n in range(200_000)) + b',"199999":0}', id="many-keys-and-one-twice"
        ),
        pytest.param(
            encoded(changed(DOCUMENT, ("features", 0, "values"), [*map(str, range(16_382)), "16381"])),
            id="many-values-and-one-twice",
        ),
        pytest.param(
            encoded(
                changed(
                    DOCUMENT,
                    ("features",),
                    [{"name": f"x{n}", "kind": "continuous", "low": 0, "high": 1, "bins": 16_384} for n in range(1000)],
                )
            ),
            id="many-bins",
        ),
        pytest.param(encoded(changed(DOCUMENT, (Q, 0, "parameters", "p"), "9" * 1_000_000)), id="an-enormous-number"),
        pytest.param(b'{"version":' + b"9" * 1_000_000 + b"}", id="an-enormous-integer"),
    ],
)
def test_a_hostile_document_is_refused_within_two_seconds_of_work(document):
    assert seconds_to_refuse(document) < 2


@pytest.mark.parametrize("depth", [500, *range(900, 1000, 4), 2000])
def test_nesting_that_just_passes_the_json_parser_is_still_refused_as_a_document(depth):
    text = json.dumps(DOCUMENT).replace(
        json.dumps(DOCUMENT[Q][0]["parameters"]), '{"p": ' + "[" * depth + "]" * depth + ', "q": 1}'
    )
    with pytest.raises(DocumentError):
        Campaign.parse(text.encode())


def test_a_message_about_a_hostile_text_is_short_and_fits_utf_8():
    for name in ("k" * 1_000_000, "\ud800"):
        with pytest.raises(DocumentError) as refused:
            Campaign.parse(encoded({**DOCUMENT, name: 1}))
        assert len(str(refused.value).encode()) < 1000


# --- fuzzing ---------------------------------------------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=()), max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def places(value, prefix=()):
    """Every place inside a JSON value."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield (*prefix, key)
        yield from places(member, (*prefix, key))


@given(json_values)
@settings(max_examples=150)
def test_random_json_raises_nothing_but_the_typed_errors(value):
    for text in (json.dumps(value), json.dumps(value).encode()):
        with pytest.raises(DraftError):
            Campaign.compile(text)
    with pytest.raises(DocumentError):
        Campaign.parse(json.dumps(value).encode())


@given(st.sampled_from(list(places(DRAFT))), json_values)
@settings(max_examples=300)
def test_a_draft_with_anything_anywhere_compiles_or_is_refused_as_a_draft(place, value):
    campaign, refused = attempt(lambda: Campaign.compile(changed(DRAFT, place, value)), DraftError)
    if refused:
        assert refused.field
        return
    assert campaign.loss <= exact_epsilon(campaign.privacy.epsilon)
    assert Campaign.parse(campaign.document, campaign.id) == campaign


hostile_values = json_values | st.sampled_from(
    [
        1,
        2,
        3,
        1 << 63,
        "1",
        HALF,
        str((1 << 64) - 1),
        "all",
        "one",
        "de",
        "ss",
        "she",
        "sign",
        "moment",
        "index",
        1e-300,
        1e300,
    ]
)


@given(st.sampled_from(list(places(DOCUMENT))), hostile_values)
@settings(max_examples=500)
def test_a_document_with_anything_anywhere_is_refused_or_keeps_its_promise(place, value):
    campaign, refused = attempt(lambda: Campaign.parse(encoded(changed(DOCUMENT, place, value))), DocumentError)
    if refused:
        assert refused.code in ("invalid-document", "invalid-parameters", "unknown-mechanism", "loss-above-epsilon")
        return
    for question in campaign.questions:
        assert question.loss() <= exact_epsilon(campaign.privacy.epsilon)


@given(st.binary(max_size=40))
def test_random_bytes_are_no_document(data):
    with pytest.raises(DocumentError):
        Campaign.parse(data)


@given(st.data())
@settings(max_examples=200)
def test_flipping_a_byte_never_raises_anything_else(data):
    document = bytearray(Campaign.compile(EVERY_KIND).document)
    document[data.draw(st.integers(0, len(document) - 1))] ^= data.draw(st.integers(1, 255))
    campaign, refused = attempt(lambda: Campaign.parse(bytes(document)), DocumentError)
    assert refused or campaign.loss <= exact_epsilon(campaign.privacy.epsilon)
