"""Documents that somebody has tampered with, made to waste a reader's time, or fuzzed: nobody gets one past a device.

Beside the refused ones of the vectors.
"""

import json
import time

import pytest
from credit_draft import (
    ABSENT,
    DOCUMENT,
    DRAFT,
    EVERY_KIND,
    HALF,
    Q,
    attempt,
    changed,
    document_of,
    encoded,
    json_values,
    names,
    places,
)
from drafts import number
from hypothesis import given
from hypothesis import strategies as st

from ldp_protocols import Campaign, DocumentError, DraftError
from ldp_protocols.exact import exact_epsilon

LARGEST_DOCUMENT = 4 << 20


INVALID = {
    (Q, 1, "parameters"): [[]],
    (Q, 1, "domain_size"): [1 << 40, 0],
    (Q, 1, "group"): [0, 10**6, -1],
    (Q, 0, "group"): [1],
    (Q, 1, "feature"): ["income", "secret", None],
    (Q, 1, "kind"): ["value", "label", "product"],
    (Q, 1, "encoding"): ["moment", "sign"],
    (Q, 3, "encoding"): ["index", "sign"],
    (Q, 3, "kind"): ["square"],
    (Q, 1, "mechanism"): ["laplace"],
    (Q, 1, "weight"): [-1, 1 << 31, True],
    (Q, 1, "comment"): ["hi"],
    (Q, 1): [None],
    (Q,): [ABSENT],
    ("features", 0, "values"): [["young", "old"]],
    ("features", 2, "bins"): [4],
    ("label", "classes"): [["yes", "no", "maybe"]],
}
TAMPERED = [
    ((Q, 0, "parameters", "q"), "1", "loss-above-epsilon"),
    ((Q, 1, "parameters", "p"), str((1 << 64) - 1), "loss-above-epsilon"),
    ((Q, 1, "parameters", "p"), -1, "invalid-parameters"),
    ((Q, 1, "parameters", "p"), 0.5, "invalid-parameters"),
    ((Q, 1, "parameters", "p"), ABSENT, "invalid-parameters"),
    ((Q, 1, "epsilon"), 0.9999999, "loss-above-epsilon"),
    (("privacy", "answers"), "all", "loss-above-epsilon"),
    ((Q, 1, "mechanism"), "de", "invalid-parameters"),
    *((place, value, "invalid-document") for place, values in INVALID.items() for value in values),
]
HOSTILE = {
    "too long": b" " * (LARGEST_DOCUMENT + 1),
    "deeply nested": b"[" * LARGEST_DOCUMENT,
    "many keys and one twice": b"{" + b",".join(b'"%d":0' % n for n in range(200_000)) + b',"199999":0}',
    "many values and one twice": encoded(
        changed(DOCUMENT, ("features", 0, "values"), [*map(str, range(16_382)), "16381"])
    ),
    "many bins": encoded(changed(DOCUMENT, ("features",), [number(f"x{n}", bins=16_384) for n in range(1000)])),
    "an enormous number": encoded(changed(DOCUMENT, (Q, 0, "parameters", "p"), "9" * 1_000_000)),
    "an enormous integer": b'{"version":' + b"9" * 1_000_000 + b"}",
}
WORDS = ("all", "one", "de", "ss", "she", "sign", "moment", "index")
hostile_values = json_values | st.sampled_from([1, 2, 3, 1 << 63, "1", HALF, str((1 << 64) - 1), 1e-300, 1e300, *WORDS])


@pytest.mark.parametrize(("place", "value", "code"), TAMPERED, ids=names(TAMPERED))
def test_a_tampered_document_is_refused_with_its_code(place, value, code, code_of):
    assert code_of(DocumentError, Campaign.parse, encoded(changed(DOCUMENT, place, value))) == code


def test_with_all_answers_the_worst_question_of_every_group_counts(code_of):
    """Doubling the loss of only the second question of the Gaussian feature must not go unnoticed."""
    document = document_of(
        Campaign.compile({**DRAFT, "privacy": {"epsilon": 1.0, "answers": "all", "continuous": "laplace"}})
    )
    square = document[Q][4]
    assert square["kind"] == "square"
    louder = changed(square, ("parameters", "scale"), str(int(square["parameters"]["scale"]) // 2))
    louder["epsilon"] = 2 * louder["epsilon"]
    assert code_of(DocumentError, Campaign.parse, encoded(changed(document, (Q, 4), louder))) == "loss-above-epsilon"


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_document_is_read_from_whatever_holds_its_bytes_and_kept_as_they_are(kind):
    written = encoded(DOCUMENT)
    held = kind(bytearray(written))
    campaign = Campaign.parse(held)
    if kind is bytearray:
        held[:] = bytes(len(written))
    assert campaign.document == written
    assert campaign == Campaign.parse(written, campaign.id)


@pytest.mark.parametrize("document", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_document_is_refused_within_two_seconds_of_work(document):
    """Of the processor's time, so that a busy machine fails nothing."""
    start = time.process_time()
    with pytest.raises(DocumentError):
        Campaign.parse(document)
    assert time.process_time() - start < 2


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


@given(json_values)
def test_random_json_raises_nothing_but_the_typed_errors(value):
    for text in (json.dumps(value), json.dumps(value).encode()):
        with pytest.raises(DraftError):
            Campaign.compile(text)
    with pytest.raises(DocumentError):
        Campaign.parse(json.dumps(value).encode())


@given(st.sampled_from(list(places(DRAFT))), json_values)
def test_a_draft_with_anything_anywhere_compiles_or_is_refused_as_a_draft(place, value):
    campaign, refused = attempt(lambda: Campaign.compile(changed(DRAFT, place, value)), DraftError)
    if refused:
        assert refused.field
        return
    assert campaign.loss <= exact_epsilon(campaign.privacy.epsilon)
    assert Campaign.parse(campaign.document, campaign.id) == campaign


@given(st.sampled_from(list(places(DOCUMENT))), hostile_values)
def test_a_document_with_anything_anywhere_is_refused_or_keeps_its_promise(place, value):
    campaign, refused = attempt(lambda: Campaign.parse(encoded(changed(DOCUMENT, place, value))), DocumentError)
    if refused:
        assert refused.code in ("invalid-document", "invalid-parameters", "unknown-mechanism", "loss-above-epsilon")
        return
    for question in campaign.questions:
        assert question.loss() <= exact_epsilon(campaign.privacy.epsilon)


@given(st.data())
def test_flipping_a_byte_never_raises_anything_else(data):
    document = bytearray(Campaign.compile(EVERY_KIND).document)
    document[data.draw(st.integers(0, len(document) - 1))] ^= data.draw(st.integers(1, 255))
    campaign, refused = attempt(lambda: Campaign.parse(bytes(document)), DocumentError)
    assert refused or campaign.loss <= exact_epsilon(campaign.privacy.epsilon)
