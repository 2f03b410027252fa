import json

import pytest
from credit_draft import changed, json_values, places
from hypothesis import given
from hypothesis import strategies as st

from ldp_protocols import DocumentError
from ldp_protocols.document.model import DiscreteLikelihood, GaussianLikelihood, Model
from ldp_protocols.features import CategoricalFeature, NumericFeature

DOCUMENT = {
    "version": 1,
    "kind": "naive-bayes",
    "label": "missed_payment",
    "classes": ["yes", "no"],
    "prior": [0.4, 0.6],
    "features": [
        {"name": "age", "kind": "categorical", "values": ["young", "old"], "likelihood": [[0.5, 0.0], [0.5, 1.0]]},
        {"name": "wage", "kind": "continuous", "low": 0, "high": 9, "bins": 2, "likelihood": [[0.3, 0.9], [0.7, 0.1]]},
        {"name": "hours", "kind": "gaussian", "low": 0, "high": 100, "mean": [40.0, 38.5], "variance": [90.0, 81.0]},
    ],
    "projection": None,
    "training": {"reports": 10},
}
ENORMOUS = "an integer of 5,001 digits, which Python does not write out"
REFUSED = [
    (("label",), "", "label"),
    (("label",), "age", "features"),
    (("classes",), ["yes", "yes"], "classes"),
    (("classes",), ["yes", "no", "maybe"], "prior"),
    (("prior",), [-0.1, 1.1], "prior"),
    (("prior",), ["0.4", 0.6], "prior"),
    (("prior",), [True, 0.0], "prior"),
    (("prior",), [10**400, 0], "document"),
    (("features",), None, "features"),
    (("features",), [DOCUMENT["features"][0]] * 2, "features"),
    (("features", 0, "kind"), "ordinal", "features[0].kind"),
    (("features", 0, "values"), ["young"], "features[0].likelihood"),
    (("features", 0, "likelihood"), [[0.5, 0.5], [0.5, 0.6]], "features[0].likelihood"),
    (("features", 0, "likelihood"), [[0.5], [0.5]], "features[0].likelihood"),
    (("features", 0, "likelihood"), "uniform", "features[0].likelihood"),
    (("features", 0, "mean"), [1, 2], "features[0].mean"),
    (("features", 1, "bins"), 1, "features[1].bins"),
    (("features", 1, "bins"), 3, "features[1].likelihood"),
    (("features", 1, "low"), 9, "features[1].low"),
    (("features", 2, "low"), -1e300, "features[2].high"),
    (("features", 2, "low"), ENORMOUS, "document"),
    (("features", 2, "mean"), [40.0, None], "features[2].mean"),
    (("features", 2, "variance"), [90.0, -1.0], "features[2].variance"),
    (("features", 2, "variance"), [90.0, 1e301], "features[2].variance"),
    (("features", 2, "bins"), 4, "features[2].bins"),
    (("projection",), 7, "projection"),
    (("training",), [1], "training"),
    (("comment",), "hi", "comment"),
]


def test_a_model_document_reads_as_plain_probabilities_and_its_text_is_stable():
    model = Model.from_json(json.dumps(DOCUMENT))
    assert (model.label, model.classes, model.prior) == ("missed_payment", ("yes", "no"), (0.4, 0.6))
    assert model.likelihoods == (
        DiscreteLikelihood(CategoricalFeature("age", ("young", "old")), ((0.5, 0.0), (0.5, 1.0))),
        DiscreteLikelihood(NumericFeature("wage", 0, 9, 2), ((0.3, 0.9), (0.7, 0.1))),
        GaussianLikelihood(NumericFeature("hours", 0, 100), (40.0, 38.5), (90.0, 81.0)),
    )
    assert model.training == {"reports": 10}
    assert json.loads(model.to_json()) == DOCUMENT
    assert Model.from_json(model.to_json()) == model
    assert Model.from_json(model.to_json().encode()).to_json() == model.to_json()


@pytest.mark.parametrize(
    ("place", "value", "field"), REFUSED, ids=[f"{n}-{field}" for n, (_, _, field) in enumerate(REFUSED)]
)
def test_a_wrong_model_document_is_refused_with_the_field(place, value, field):
    text = json.dumps(changed(DOCUMENT, place, value)).replace(json.dumps(ENORMOUS), "9" * 5001)
    with pytest.raises(DocumentError) as refused:
        Model.from_json(text)
    assert refused.value.code == "invalid-model"
    assert str(refused.value).startswith(field)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"version": NaN}', '{"a": 1, "a": 2}', b"\xff", "[" * 100_000]
)
def test_text_that_is_no_json_object_and_an_infinite_number_which_json_has_not_are_refused(text):
    with pytest.raises(DocumentError):
        Model.from_json(text)
    with pytest.raises(DocumentError, match="finite"):
        Model.from_json(json.dumps(DOCUMENT).replace('"reports": 10', '"reports": 1e999'))


@given(st.sampled_from(list(places(DOCUMENT))), json_values)
def test_a_model_with_anything_anywhere_is_refused_or_round_trips(place, value):
    try:
        model = Model.from_json(json.dumps(changed(DOCUMENT, place, value)))
    except DocumentError:
        return
    assert Model.from_json(model.to_json()) == model
