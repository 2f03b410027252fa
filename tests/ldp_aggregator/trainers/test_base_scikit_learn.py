"""With a schema, too, a trainer is a classifier as scikit-learn has them: whatever wraps or scores it gets the numbers
of ``CategoricalNB``, which is the same model without privacy.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from ldp_aggregator import NaiveBayes
from ldp_aggregator.learning.frames import EncodedLabelWarning
from ldp_aggregator.trainers import SufficientStatisticsNB

ROWS = 600
RNG = np.random.default_rng(8)
OF_YES = RNG.random(ROWS) < 0.4
X = (
    np.stack(
        [
            (RNG.random(ROWS) < np.where(OF_YES, 0.7, 0.4)) + 0,
            RNG.integers(0, 3, ROWS),
            OF_YES ^ (RNG.random(ROWS) < 0.3),
        ]
    ).T
    + 0
)
KINDS = {
    "text": (("no", "yes"), np.where(OF_YES, "yes", "no")),
    "object": (("no", "yes"), np.where(OF_YES, "yes", "no").astype(object)),
    "integer": (("0", "1"), OF_YES.astype(np.int64)),
    "float": (("0", "1"), OF_YES.astype(np.float64)),
    "boolean": (("false", "true"), OF_YES),
}
SCORERS = (
    "accuracy",
    "balanced_accuracy",
    "roc_auc",
    "neg_log_loss",
    "f1_macro",
    "precision_macro",
    "recall_weighted",
    "matthews_corrcoef",
    "jaccard_weighted",
)
WRAPPERS = {
    "voting": lambda one: VotingClassifier([("a", one)], voting="soft"),
    "bagging": lambda one: BaggingClassifier(one, n_estimators=2, random_state=1),
    "calibrated": lambda one: CalibratedClassifierCV(one, cv=3),
    "one against the rest": OneVsRestClassifier,
    "stacking": lambda one: StackingClassifier([("a", one)], cv=3),
    "pipeline": lambda one: make_pipeline(FunctionTransformer(), one),
    "grid": lambda one: GridSearchCV(one, {}, cv=3, scoring="roc_auc"),
}


def schema_of(classes):
    sizes = {"a": 2, "b": 3, "c": 2}
    features = [
        {"name": name, "kind": "categorical", "values": [*map(str, range(size))]} for name, size in sizes.items()
    ]
    return {"label": {"name": "y", "classes": list(classes)}, "features": features}


def made(classes, order):
    return NaiveBayes(schema_of(classes[::order]))


def reference():
    return CategoricalNB(min_categories=[2, 3, 2])


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


@pytest.mark.parametrize("order", [1, -1], ids=["sorted", "turned round"])
def test_classes_are_sorted_and_of_the_labels_own_type_and_columns_in_their_order(kind, order):
    classes, y = kind
    ours, theirs = made(classes, order).fit(X, y), reference().fit(X, y)
    assert ours.model_.classes == classes[::order], "a document keeps the order of its schema"
    assert ours.classes_.tolist() == theirs.classes_.tolist()
    assert type(ours.classes_.tolist()[0]) is type(theirs.classes_.tolist()[0])
    assert ours.predict(X).tolist() == theirs.predict(X).tolist()
    assert ours.predict_proba(X) == pytest.approx(theirs.predict_proba(X), abs=1e-12)
    assert ours.predict_joint_log_proba(X) == pytest.approx(theirs.predict_joint_log_proba(X), abs=1e-12)
    assert ours.class_prior_ == pytest.approx(np.exp(theirs.class_log_prior_), abs=1e-12)
    assert ours.scores(X)[:, ::order] == pytest.approx(theirs.predict_joint_log_proba(X), abs=1e-12)
    assert ours.predict_proba(pd.DataFrame(X, columns=["a", "b", "c"])) == pytest.approx(ours.predict_proba(X))


@pytest.mark.parametrize("order", [1, -1], ids=["sorted", "turned round"])
@pytest.mark.parametrize("scoring", SCORERS)
def test_every_scorer_gives_the_number_of_scikit_learns_own(kind, order, scoring):
    classes, y = kind
    ours, theirs = (cross_val_score(one, X, y, cv=4, scoring=scoring) for one in (made(classes, order), reference()))
    assert ours == pytest.approx(theirs, abs=1e-12)


@pytest.mark.filterwarnings("ignore::ldp_aggregator.learning.frames.EncodedLabelWarning")
@pytest.mark.parametrize("order", [1, -1], ids=["sorted", "turned round"])
@pytest.mark.parametrize("name", WRAPPERS)
def test_every_wrapper_gives_the_numbers_of_scikit_learns_own(kind, order, name):
    classes, y = kind
    ours, theirs = (WRAPPERS[name](one).fit(X, y) for one in (made(classes, order), reference()))
    assert ours.predict_proba(X) == pytest.approx(theirs.predict_proba(X), abs=1e-12)
    assert ours.predict(X).tolist() == theirs.predict(X).tolist()
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-12)


@pytest.mark.filterwarnings("ignore::ldp_aggregator.learning.frames.EncodedLabelWarning")
@pytest.mark.parametrize("order", [1, -1], ids=["sorted", "turned round"])
def test_predictions_across_folds_are_those_of_scikit_learns_own(kind, order):
    classes, y = kind
    ours, theirs = (
        cross_val_predict(one, X, y, cv=4, method="predict_proba") for one in (made(classes, order), reference())
    )
    assert ours == pytest.approx(theirs, abs=1e-12)


@pytest.mark.filterwarnings("ignore::ldp_aggregator.trainers.PrivacyWarning")
@pytest.mark.parametrize("order", [1, -1], ids=["sorted", "turned round"])
def test_a_private_trainer_scores_as_its_model_is(kind, order):
    """With next to no noise; the columns of a fit without privacy."""
    classes, y = kind
    ours = SufficientStatisticsNB(schema_of(classes[::order]), epsilon=1e6, random_state=1).fit(X, y)
    assert ours.classes_.tolist() == reference().fit(X, y).classes_.tolist()
    assert ours.predict_proba(X) == pytest.approx(reference().fit(X, y).predict_proba(X), abs=0.01)
    assert set(ours.predict(X).tolist()) == set(y.tolist())


def test_integers_for_classes_in_words_are_those_of_an_encoder_and_that_is_told():
    with pytest.warns(EncodedLabelWarning, match="0 is no, 1 is yes"):
        model = made(("no", "yes"), -1).fit(X, OF_YES.astype(np.int64))
    assert model.classes_.tolist() == [0, 1]
    assert model.predict_proba(X) == pytest.approx(reference().fit(X, OF_YES).predict_proba(X), abs=1e-12)
    with (
        pytest.warns(EncodedLabelWarning),
        pytest.raises(ValueError, match=r"y holds .*2.*; the declared classes are yes, no"),
    ):
        made(("no", "yes"), -1).fit(X, np.where(OF_YES, 2, 0))


def test_ten_classes_in_words_of_numbers_are_sorted_as_numbers_where_labels_are_numbers():
    classes = [str(number) for number in range(12)]
    y = np.arange(ROWS) % 12
    model = NaiveBayes(schema_of(classes[::-1])).fit(X, y)
    assert model.classes_.tolist() == list(range(12))
    assert NaiveBayes(schema_of(classes)).fit(X, y.astype(str)).classes_.tolist() == sorted(classes)
    assert set(NaiveBayes.from_json(model.to_json()).predict(X)) <= set(classes), "of a document classes are texts"
