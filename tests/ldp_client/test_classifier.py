"""Naive Bayes in pure Python, on the ten people of the LDP Naive Bayes paper (Yilmaz et al. 2019, Table 1)."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paper_table import PEOPLE

from ldp_client import Classifier
from protocols.model import Model

CLASSES = ("yes", "no")
VALUES = {"age": ("young", "medium", "old"), "income": ("low", "medium", "high"), "gender": ("male", "female")}
PERSON = {"age": "young", "income": "medium", "gender": "female"}
GAUSSIAN = {"name": "x", "kind": "gaussian", "low": 0, "high": 10, "mean": [2.0, 7.0], "variance": [4.0, 1.0]}


def model_of(features, prior=(0.5, 0.5)):
    head = {"version": 1, "kind": "naive-bayes", "label": "y", "classes": CLASSES}
    return Model.from_json(json.dumps({**head, "prior": prior, "features": features}))


def paper_model():
    """Relative frequencies, without noise and without smoothing."""
    rows = {name: [person for person in PEOPLE if person[3] == name] for name in CLASSES}
    features = [
        {
            "name": name,
            "kind": "categorical",
            "values": values,
            "likelihood": [
                [sum(row[column] == value for row in rows[c]) / len(rows[c]) for c in CLASSES] for value in values
            ],
        }
        for column, (name, values) in enumerate(VALUES.items())
    ]
    return model_of(features, [len(rows[c]) / len(PEOPLE) for c in CLASSES])


PAPER = Classifier(paper_model())


def test_the_papers_example_gives_its_products_and_the_class_they_imply():
    """The paper prints 0.055 for "no", a slip for 0.6 * 1/6 * 1/6 * 2/6, and so concludes the wrong class."""
    yes, no = map(math.exp, PAPER.joint_log_likelihood(PERSON))
    assert yes == pytest.approx(0.025, rel=1e-12)
    assert no == pytest.approx(0.6 * 1 / 6 * 1 / 6 * 2 / 6, rel=1e-12)
    assert no == pytest.approx(0.00556, abs=5e-6)
    assert PAPER.predict(PERSON) == "yes"
    assert PAPER.predict_proba(PERSON) == pytest.approx({"yes": yes / (yes + no), "no": no / (yes + no)}, rel=1e-12)


@pytest.mark.parametrize("value", [None, "ancient", 5, 1.5, True])
def test_a_feature_without_a_usable_value_does_not_take_part(value):
    without = {"income": "medium", "gender": "female"}
    assert PAPER.predict_proba({**without, "age": value}) == PAPER.predict_proba(without)
    assert PAPER.predict_proba({}) == pytest.approx({"yes": 0.4, "no": 0.6})


def test_where_missing_is_a_declared_value_an_undeclared_one_is_missing():
    table = {"name": "x", "kind": "categorical", "values": ["1", "missing"], "likelihood": [[0.9, 0.2], [0.1, 0.8]]}
    classifier = Classifier(model_of([table]))
    assert classifier.predict_proba({"x": "2"}) == pytest.approx({"yes": 1 / 9, "no": 8 / 9})
    assert classifier.predict_proba({}) == classifier.predict_proba({"x": "missing"})
    assert classifier.predict({"x": 1}) == "yes"


def test_where_every_class_is_impossible_the_prior_stands():
    table = {"name": "x", "kind": "categorical", "values": ["1", "2"], "likelihood": [[0.0, 0.0], [1.0, 1.0]]}
    assert Classifier(model_of([table], [0.3, 0.7])).predict_proba({"x": "1"}) == {"yes": 0.3, "no": 0.7}


def test_numbers_are_binned_and_clipped_like_on_the_device():
    binned = {"name": "x", "kind": "continuous", "low": 0, "high": 8, "bins": 2, "likelihood": [[0.9, 0.2], [0.1, 0.8]]}
    classifier = Classifier(model_of([binned]))
    assert [classifier.predict({"x": x}) for x in (-5, 0, 3.99, 4, 8, 1e300)] == ["yes"] * 3 + ["no"] * 3
    assert classifier.predict_proba({"x": "three"}) == {"yes": 0.5, "no": 0.5}


def density(x, mean, variance):
    return math.exp(-((x - mean) ** 2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)


@pytest.mark.parametrize(("x", "clipped"), [(0, 0), (2.5, 2.5), (10, 10), (1e308, 10), (-math.inf, 0)])
def test_a_gaussian_feature_multiplies_in_its_density_at_the_clipped_value(x, clipped):
    yes, no = 0.3 * density(clipped, 2, 4), 0.7 * density(clipped, 7, 1)
    proba = Classifier(model_of([GAUSSIAN], [0.3, 0.7])).predict_proba({"x": x})
    assert proba == pytest.approx({"yes": yes / (yes + no), "no": no / (yes + no)}, rel=1e-9)


@given(st.floats(-1e140, 1e140), st.floats(min_value=0, exclude_min=True, max_value=1e300), st.floats(allow_nan=False))
def test_no_number_of_a_valid_model_overflows_or_gives_a_probability_that_is_none(mean, variance, x):
    wide = {**GAUSSIAN, "low": -1e140, "high": 1e140, "mean": [mean, 0.0], "variance": [variance, 1.0]}
    proba = Classifier(model_of([wide])).predict_proba({"x": x})
    assert math.fsum(proba.values()) == pytest.approx(1)
    assert all(0 <= share <= 1 for share in proba.values())


def test_very_many_features_do_not_underflow():
    rare = {"kind": "categorical", "values": ["1", "2"], "likelihood": [[1e-6, 2e-6], [1 - 1e-6, 1 - 2e-6]]}
    classifier = Classifier(model_of([{**rare, "name": f"x{n}"} for n in range(1000)]))
    proba = classifier.predict_proba({f"x{n}": "1" for n in range(1000)})
    assert proba == {"yes": pytest.approx(2.0**-1000, rel=1e-9), "no": 1.0}
