"""The model without noise: the paper's example, the scikit-learn contract, JSON, agreement with the device."""

import numpy as np
import pandas as pd
import pytest
from drafts import draft, text
from sklearn.naive_bayes import GaussianNB

from ldp_aggregator import NaiveBayes, Tally, train
from ldp_client.classifier import Classifier
from ldp_protocols import Campaign, DraftError
from ldp_protocols.document.model import Model
from ldp_simulations import simulate

QUESTION = {"age": "young", "income": "medium", "gender": "female"}

MIXED = {
    "label": {"name": "class", "classes": ["a", "b", "c"]},
    "features": [
        {"name": "colour", "kind": "categorical", "values": ["red", "blue", "missing"]},
        {"name": "size", "kind": "categorical", "values": ["1", "2", "3"]},
        {"name": "income", "kind": "continuous", "low": 0, "high": 9, "bins": 4},
        {"name": "hours", "kind": "continuous", "low": -5, "high": 5},
        {"name": "p", "kind": "continuous", "low": 0, "high": 1},
        {"name": "q", "kind": "continuous", "low": -1, "high": 2},
    ],
    "projection": {
        "method": "dca",
        "inputs": ["p", "q"],
        "mean": [0.4, 0.1],
        "scale": [0.5, 1.5],
        "matrix": [[0.3, -0.7], [0.9, 0.2]],
        "outputs": [
            {"name": "c1", "kind": "continuous", "low": -1, "high": 1, "bins": 5},
            {"name": "c2", "kind": "continuous", "low": -0.8, "high": 1.1},
        ],
        "fitted_on": "public",
    },
}


def mixed_table(rows, seed):
    """Three classes that features of every kind tell apart a little; some cells are missing or not as declared."""
    rng = np.random.default_rng(seed)
    c = rng.choice(3, size=rows, p=[0.5, 0.3, 0.2])
    frame = pd.DataFrame(
        {
            "colour": np.where(rng.random(rows) < 0.2 + 0.3 * c, "red", "blue").astype(object),
            "income": rng.normal(2 + 2 * c, 2, size=rows),
            "hours": rng.normal(2 * c - 2, 1.5, size=rows),
            "p": rng.normal(0.3 + 0.2 * c, 0.2, size=rows),
            "q": rng.normal(c - 0.5, 0.6, size=rows),
        }
    )
    frame = frame.mask(rng.random(frame.shape) < 0.1, np.nan)
    for name, cells in (("colour", ["mauve"]), ("income", [0, 2.25, 4.5, 9, -3, 12]), ("p", [np.inf, 0.1, 0.55])):
        frame.loc[rng.random(rows) < 0.05, name] = rng.choice(cells)
    return frame.assign(size=rng.integers(1, 5, size=rows)), pd.Series(np.array(["a", "b", "c"])[c])


def test_the_papers_example_without_noise(paper_table, paper_schema):
    """Yilmaz et al. 2019, section 2.1. The paper prints 0.055 for "no", a slip for 0.00556, and so the wrong class."""
    model = NaiveBayes(paper_schema, smoothing=0).fit(*paper_table)
    no, yes = np.exp(model.predict_joint_log_proba(pd.DataFrame([QUESTION])))[0]
    assert yes == pytest.approx(0.4 * 2 / 4 * 1 / 4 * 2 / 4) == pytest.approx(0.025)
    assert no == pytest.approx(0.6 * 1 / 6 * 1 / 6 * 2 / 6)
    assert no == pytest.approx(0.00556, abs=5e-6)
    assert model.predict(pd.DataFrame([QUESTION])).tolist() == ["yes"]
    assert Classifier(Model.from_json(model.to_json())).predict(QUESTION) == "yes"


def test_device_and_server_agree_on_10_000_records_of_every_kind():
    model = NaiveBayes(MIXED, variance_floor=1e-3).fit(*mixed_table(3_000, 1))
    frame, _ = mixed_table(10_000, 2)
    device = Classifier(Model.from_json(model.to_json()))
    records = frame.astype(object).to_dict("records")
    assert model.predict(frame).tolist() == [device.predict(record) for record in records]
    on_device = np.array([list(device.predict_proba(record).values()) for record in records])
    assert np.abs(model.predict_proba(frame) - on_device).max() < 1e-9


@pytest.mark.parametrize("answers", ["one", "all"])
def test_reports_about_every_kind_of_feature_make_one_model_and_the_device_agrees_with_it(answers):
    campaign = Campaign.compile(draft(**MIXED, privacy={"epsilon": 4, "answers": answers}))
    frame, labels = mixed_table(30_000, 1)
    model = train(campaign, simulate(campaign, frame, labels, rng=2))
    others, truth = mixed_table(3_000, 3)
    found = model.predict(others)
    best = NaiveBayes(MIXED).fit(frame, labels).predict(others)
    assert (found == truth).mean() > 0.9 * (best == truth).mean() > 0.9 * 0.65
    device = Classifier(Model.from_json(model.to_json()))
    assert found.tolist() == [device.predict(record) for record in others.astype(object).to_dict("records")]


def test_gaussian_features_match_scikit_learn_and_a_class_without_rows_has_defined_moments():
    rng = np.random.default_rng(4)
    X = pd.DataFrame(rng.normal(size=(400, 3)), columns=["u", "v", "w"])
    y = pd.Series(np.where(X["u"] + X["v"] > 0, "yes", "no"))
    ours, theirs = NaiveBayes().fit(X, y), GaussianNB().fit(X, y)
    assert ours.classes_.tolist() == theirs.classes_.tolist()
    assert ours.predict_proba(X) == pytest.approx(theirs.predict_proba(X), abs=1e-6)
    X = pd.DataFrame({"hours": [1.0, 2.0, 3.0]})
    schema = {"label": MIXED["label"], "features": [MIXED["features"][3]]}
    model = NaiveBayes(schema).fit(X, ["a", "a", "b"])
    assert np.isfinite(model.predict_joint_log_proba(X)[:, :2]).all()
    assert model.predict_proba(X)[:, 2].tolist() == [0, 0, 0]


def test_probabilities_add_up_to_one_even_where_every_class_is_impossible(paper_table, paper_schema):
    X, y = paper_table
    model = NaiveBayes(paper_schema, smoothing=0).fit(X.iloc[:2], y.iloc[:2])
    impossible = {"age": "old", "income": "low", "gender": "male"}
    assert model.predict_proba(pd.DataFrame([impossible])).tolist() == [[0.0, 1.0]], "no, yes"

    only_no = NaiveBayes(paper_schema, smoothing=0).fit(X.iloc[2:4], y.iloc[2:4])
    assert only_no.predict(pd.DataFrame([{**impossible, "age": "young"}])).tolist() == ["no"]
    device = Classifier(Model.from_json(only_no.to_json()))
    assert device.predict({**impossible, "age": "young"}) == "no"


def test_a_record_without_known_values_gets_the_prior_and_a_model_from_fit_protects_nothing(paper_table, paper_schema):
    model = NaiveBayes(paper_schema).fit(*paper_table)
    proba = model.predict_proba(pd.DataFrame([{"age": None, "income": "none", "gender": 3}]))
    assert proba[0] == pytest.approx([0.6, 0.4]), "no, yes"
    assert model.guarantee_.epsilon is None
    assert str(model.guarantee_).startswith("no privacy")


def test_tables_that_do_not_fit_are_refused(paper_table, paper_schema):
    frame, labels = paper_table
    for X, y, error, message in (
        (frame, ["yes"] * 9 + ["perhaps"], ValueError, "'perhaps'; the declared classes are yes, no"),
        (frame, ["yes"] * 9, ValueError, "10 rows and y has 9"),
        (frame.drop(columns="age"), labels, ValueError, "no column 'age'"),
        (frame[:0], labels[:0], ValueError, "at least one row"),
        (frame.to_numpy()[:, :2], labels, ValueError, "X has 2 columns; the schema has 3 features"),
        (frame.to_numpy()[0], labels, ValueError, "Expected 2D array"),
    ):
        with pytest.raises(error, match=message):
            NaiveBayes(paper_schema).fit(X, y)


def test_a_schema_without_a_label_teaches_no_model():
    schema = {"features": MIXED["features"]}
    with pytest.raises(DraftError, match="label: is missing; a model needs one, such as"):
        NaiveBayes(schema=schema).fit(pd.DataFrame({"a": ["x"]}), ["yes"])


def test_a_campaign_without_a_label_is_not_trained_on():
    campaign = Campaign.compile(draft(text("a", "x", "y"), label=None))
    with pytest.raises(ValueError, match="without a label estimates are what is learned"):
        train(campaign, Tally(campaign))
