"""Drafts that are refused, with the field and what would be right."""

import json

import pytest
from credit_draft import ABSENT, DRAFT, attempt, changed, draft_with, names
from drafts import number, text
from hypothesis import given
from hypothesis import strategies as st

from ldp_protocols import Campaign, DocumentError, DraftError

MOST_CAMPAIGN_CELLS = 1 << 18


MARKS = "\t\n\r\x00\x1b\x7f\x85\x9b\u061c\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069\ud800"
"""One or more of every kind of mark that no shown text holds."""

WRONG_COUNTS = (0, 1, -5, 1.5, "100", True, (1 << 40) + 1)
"""Numbers of devices that hide nobody, or are none."""

SWITCHES = ("missing", "ordered")
LISTED = text("age", "young", "old", "missing")

REFUSED = [
    (("version",), True, "version", "must be 1"),
    (("title",), "", "title", "non-empty text"),
    (("title",), "\ud800", "title", "surrogates"),
    (("title",), "a\x1b[2Jb", "title", "control characters"),
    *(((place,), f"a{mark}b", place, "marks of writing direction") for place in ("title", "purpose") for mark in MARKS),
    (("label", "classes"), ["a\nb", "c"], "label.classes[0]", "ends of lines"),
    (("features", 0, "name"), "a\u202eb", "features[0].name", "writing direction"),
    (("features", 0, "values"), ["a", "b\u2066"], "features[0].values[1]", "writing direction"),
    (("study",), "a\rb", "study", "ends of lines"),
    (("purpose",), 5, "purpose", "text"),
    (("operator",), " ", "operator", "must be a non-empty text"),
    (("contact",), "x" * 201, "contact", "at most 200 characters"),
    (("privacy_url",), "http://a.example", "privacy_url", "an address such as https://example.org/privacy"),
    (("privacy_url",), "https://me@a.example", "privacy_url", "an address such as https://example.org/privacy"),
    (("keep_days",), 0, "keep_days", "an integer from 1 to 36500"),
    (("keep_days",), "30", "keep_days", "an integer from 1 to 36500"),
    (("keep_day",), 30, "keep_day", "unknown key; did you mean keep_days? the keys here are features, version"),
    (("purpose",), "x" * 2001, "purpose", "at most 2000"),
    (("label",), 5, "label", "must be an object, not 5"),
    (("label", "classes"), [], "label.classes", "2 to 1024"),
    (("label", "classes"), ["yes", "yes"], "label.classes", "twice"),
    (("label", "classes"), ["yes", 1], "label.classes[1]", "non-empty text"),
    (("label", "classes"), ["yes", "n" * 201], "label.classes[1]", "at most 200"),
    (("label", "weight"), -1, "label.weight", "integer from 0"),
    (("features",), [], "features", "1 to 1000"),
    (("features", 0), [], "features[0]", "object"),
    (("features", 0, "name"), "hours", "features[2].name", "features[0].name; names must be different"),
    (("features", 0, "name"), "missed_payment", "features[0].name", "label.name; names must be different"),
    (("features", 0, "kind"), "text", "features[0].kind", "categorical, continuous"),
    (("features", 0, "values"), ["young"], "features[0].values", "2 to 16384"),
    (("features", 0, "values"), "young", "features[0].values", "list"),
    (("features", 0, "values"), ["a", "b", "a"], "features[0].values", "every entry must be different"),
    (("features", 0, "bins"), 3, "features[0].bins", "the keys here are"),
    (("features", 0, "weight"), 0, "features[0].weight", "integer from 1"),
    (("features", 0, "values"), ["Cafe\u0301", "Caf\u00e9"], "features[0].values", "two entries are one text"),
    (("label", "classes"), ["Cafe\u0301", "Caf\u00e9"], "label.classes", "two entries are one text"),
    (("features", 1, "ordered"), True, "features[1].ordered", "unknown key"),
    *(
        (("features", 0, key), wrong, f"features[0].{key}", "true or false")
        for key in SWITCHES
        for wrong in (0, "true")
    ),
    (("features", 0), {**LISTED, "missing": True}, "features[0].missing", "is one of the values"),
    (("features", 0), {**LISTED, "ordered": True}, "features[0].ordered", "no place in an order; leave it out"),
    (("features", 1, "bins"), 1, "features[1].bins", "integer from 2"),
    (("features", 1, "bins"), 1 << 15, "features[1].bins", "16384"),
    (("features", 2, "low"), True, "features[2].low", "number"),
    (("features", 2, "low"), float("nan"), "features[2].low", "finite"),
    (("features", 2, "high"), 10**400, "features[2].high", "finite"),
    (("features", 2, "high"), 10**5000, "features[2].high", "finite"),
    (("features", 2, "low"), 100, "features[2].low", "below high"),
    (("features", 2, "high"), 1e-200, "features[2].high", "choose other units"),
    (("features", 2, "values"), ["a", "b"], "features[2].values", "the keys here are"),
    (("privacy",), [], "privacy", "must be an object, not []"),
    (("privacy", "epsilon"), 0, "privacy.epsilon", "above 0"),
    (("privacy", "epsilon"), float("nan"), "privacy.epsilon", "finite"),
    (("privacy", "epsilon"), 1e-9, "privacy.epsilon", "below 1e-06 nothing can be learned"),
    (("privacy", "answers"), "some", "privacy.answers", "one, all"),
    (("privacy", "discrete"), "grr", "privacy.discrete", "de, ss, oue"),
    (("privacy", "continuous"), "gauss", "privacy.continuous", "onebit, laplace, sign"),
    (("privacy", "theta"), 0, "privacy.theta", "above 0 and at most 1"),
    (("privacy", "delta"), 0.1, "privacy.delta", "the keys here are"),
    *((("privacy", "release_every"), wrong, "privacy.release_every", "from 2 to") for wrong in WRONG_COUNTS),
    (("study",), "", "study", "non-empty text"),
    (("opens",), "2028-01-01T00:00:00Z", "closes", "later than opens"),
    (("closes",), "2027-01-01", "closes", "2027-01-01T00:00:00Z"),
    (("closes",), "2027-W01-1T00:00:00Z", "closes", "2027-01-01T00:00:00Z"),
    (("closes",), 1798761600, "closes", "2027-01-01T00:00:00Z"),
    (("questions",), [], "questions", "unknown key"),
    (("epsilon",), 1, "epsilon", "unknown key"),
]
MISSING = [
    (("version",), "is missing; it must be 1"),
    (("title",), "is missing; it must be a non-empty text"),
    (("label", "name"), "is missing; it must be a non-empty text"),
    (("label", "classes"), "is missing; it must be a list of 2 to 1024 entries"),
    (("features",), 'is missing; it looks like [{"name": "age", "kind": "categorical", "values": ["young", "old"]}]'),
    (("features", 0, "kind"), "is missing; it must be one of categorical, continuous"),
    (("features", 0, "values"), "is missing; it must be a list of 2 to 16384 entries"),
    (("features", 2, "low"), "is missing; it must be a number"),
    (("privacy",), 'is missing; it looks like {"epsilon": 1.0}'),
    (("privacy", "epsilon"), "is missing; it must be a number"),
]


@pytest.mark.parametrize(("place", "value", "field", "right"), REFUSED, ids=names(REFUSED))
def test_a_wrong_draft_is_refused_with_the_field_and_what_would_be_right(place, value, field, right):
    with pytest.raises(DraftError) as refused:
        Campaign.compile(changed(DRAFT, place, value))
    assert refused.value.code == "invalid-draft"
    assert refused.value.field == field
    assert right in refused.value.problem
    assert str(refused.value).startswith(f"{field}: ")


@pytest.mark.parametrize("value", [ABSENT, None], ids=["absent", "null"])
@pytest.mark.parametrize(("place", "right"), MISSING, ids=lambda value: str(value)[:24])
def test_a_key_that_is_missing_is_told_as_missing_with_what_it_looks_like(place, right, value):
    with pytest.raises(DraftError) as refused:
        Campaign.compile(changed(DRAFT, place, value))
    field = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)[1:]
    assert (refused.value.field, refused.value.problem) == (field, right)
    if "looks like" in right:
        assert Campaign.compile({**DRAFT, place[0]: json.loads(right.split("looks like ", 1)[1])})


def test_an_evaluation_without_a_model_and_a_projection_without_a_list_are_told_as_missing():
    with pytest.raises(DraftError, match=r"evaluation\.model: is missing; it looks like a model that train"):
        Campaign.compile({**DRAFT, "asks": "score", "study": "s", "evaluation": {"edges": [0]}})
    projection = {"method": "pca", "inputs": ["hours"]}
    with pytest.raises(DraftError, match=r"projection\.mean: is missing; it must be a list of 1 numbers"):
        Campaign.compile({**DRAFT, "projection": projection})


def test_bins_narrower_than_a_double_are_refused():
    narrow = number("t", 2**52, 2**52 + 8, bins=9)
    with pytest.raises(DraftError, match=r"^features\[1\]\.bins: .*narrower than a double resolves"):
        Campaign.compile(draft_with("features", 1, value=narrow))


@given(
    st.floats(min_value=-1e150, max_value=1e150),
    st.floats(min_value=1e-140, max_value=1e149),
    st.integers(min_value=2, max_value=500),
)
def test_every_bin_of_an_accepted_feature_can_be_reached(low, span, bins):
    feature = number("t", low, low + span, bins=bins)
    campaign, refused = attempt(lambda: Campaign.compile(draft_with("features", value=[feature])), DraftError)
    if refused:
        assert refused.field.startswith("features[0].")
        return
    edges = campaign.features[0].inner_edges
    assert len(edges) == bins - 1
    assert all(first < second for first, second in zip((low, *edges), (*edges, low + span), strict=True))


def test_too_many_cells_in_one_question_or_in_all_are_refused():
    draft = draft_with("label", "classes", value=[*"abcdefgh"])
    with pytest.raises(DraftError, match=r"^features\[0\]\.bins: .*at most 65536"):
        Campaign.compile({**draft, "features": [number("x", bins=8193)]})
    with pytest.raises(DraftError, match=f"^features: .*{MOST_CAMPAIGN_CELLS}"):
        Campaign.compile({**draft, "features": [number(f"x{n}", bins=8192) for n in range(4)]})


@pytest.mark.parametrize(
    ("given", "problem"),
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
        (b"1" * 10_000, "beyond a double"),
    ],
)
def test_text_that_is_no_json_object_is_refused(given, problem):
    with pytest.raises(DraftError, match=problem):
        Campaign.compile(given)
    with pytest.raises(DocumentError, match=problem) as refused:
        Campaign.parse(given)
    assert refused.value.code == "invalid-document"


def test_a_mapping_that_no_json_text_could_hold_is_refused_as_a_draft():
    loop = []
    loop.append(loop)
    for value in (loop, {(1, 2): 3}, {1, 2}, 10**5000, b"bytes", float("nan")):
        with pytest.raises(DraftError):
            Campaign.compile({**DRAFT, "label": value})
