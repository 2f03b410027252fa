"""The trainers: exact statistics, noise that spends exactly epsilon, sensible models, honest about both."""

import math
import warnings
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest

from ldp_aggregator import NaiveBayes
from ldp_aggregator.node_statistics import parts_of
from ldp_aggregator.trainers import (
    FederatedNB,
    GlobalSensitivityNB,
    PrivateKMeans,
    SmoothSensitivityNB,
    SufficientStatisticsNB,
)
from ldp_aggregator.trainers.accountant import Accountant
from ldp_aggregator.trainers.model_from_statistics import Options, rebuild
from ldp_aggregator.trainers.moment_training import MomentColumn, published_sensitivities
from ldp_aggregator.trainers.randomness import PrivacyWarning, SeededCoins
from ldp_aggregator.trainers.schemas import Schema
from ldp_aggregator.trainers.statistics import add_noise, plan_noise, statistics_of
from ldp_protocols.document.model import GaussianLikelihood, Model
from ldp_protocols.exact import exact_epsilon

SPAN = 2**21
GRID = 2**20


pytestmark = pytest.mark.filterwarnings("ignore::ldp_aggregator.trainers.randomness.PrivacyWarning")


MOMENTS = [
    (trainer, {"variant": variant, "relation": relation})
    for trainer in (GlobalSensitivityNB, SmoothSensitivityNB)
    for variant, relation in (("sound", "add-remove"), ("sound", "replace"), ("published", "replace"))
]
ALL = [(SufficientStatisticsNB, {}), *MOMENTS]


@pytest.mark.parametrize(("trainer", "parameters"), ALL)
def test_with_hardly_any_noise_it_is_the_model_without_noise(schema, table, trainer, parameters):
    frame, labels = table
    frame = frame.assign(hours=frame["hours"].clip(0, 100), age=frame["age"].clip(18, 90))
    epsilon, off = (300.0, 0.01) if parameters else (1e5, 1e-3)
    private = trainer(schema, epsilon=epsilon, random_state=0, **parameters).fit(frame, labels).model_
    exact = NaiveBayes(schema).fit(frame, labels).model_
    assert private.prior == pytest.approx(exact.prior, abs=off)
    for mine, right in zip(private.likelihoods, exact.likelihoods, strict=True):
        if isinstance(right, GaussianLikelihood):
            assert mine.mean == pytest.approx(right.mean, rel=off)
            assert mine.variance == pytest.approx(right.variance, rel=10 * off)
        else:
            assert np.array(mine.table) == pytest.approx(np.array(right.table), abs=off)


def test_the_guarantee_and_the_budget_are_stated_and_without_a_schema_there_is_no_guarantee(schema, table):
    fitted = SufficientStatisticsNB(schema, epsilon=0.5).fit(*table)
    assert str(fitted.guarantee_) == (
        "epsilon = 0.5; relation: add or remove one row; public: the schema: classes, values, bounds, and of what type "
        "labels are"
    )
    assert sum(fitted.budget_.values()) == pytest.approx(0.5)
    assert list(fitted.budget_)[:3] == ["class counts", "colour", "hours: sum and square"]
    assert NaiveBayes.from_json(fitted.to_json()).guarantee_ == fitted.guarantee_
    replaced = SufficientStatisticsNB(schema, relation="replace").fit(*table)
    assert "labels and class counts" in str(replaced.guarantee_)
    assert "class counts" not in replaced.budget_
    with pytest.warns(PrivacyWarning, match="were read off the table"):
        assert SufficientStatisticsNB(epsilon=1.0).fit(*table).guarantee_.epsilon is None


def test_pieces_of_a_table_give_the_model_of_the_whole(schema, table):
    frame, labels = table
    pieces = [(frame.iloc[i : i + 100], labels.iloc[i : i + 100]) for i in range(0, len(frame), 100)]
    for chunks, rows in ((pieces, len(frame)), ([], 0)):
        whole = SufficientStatisticsNB(schema, random_state=4).fit(frame.head(rows), labels.head(rows))
        assert SufficientStatisticsNB(schema, random_state=4).fit_chunks(chunks).to_json() == whole.to_json()
    with pytest.raises(ValueError, match="need a schema"):
        SufficientStatisticsNB().fit_chunks(pieces)
    with pytest.raises(ValueError, match="X has 10 rows and y has 9"):
        SufficientStatisticsNB(schema).fit_chunks([(frame.head(10), labels.head(9))])


def odd_tables():
    base = pd.DataFrame({"colour": ["red"] * 30, "hours": [50.0] * 30, "income": [1.0] * 30, "age": [40.0] * 30})
    labels = ["a"] * 29 + ["b"]
    yield "constant columns, a class of one row, a class of none", base, labels
    yield "only one class", base, ["b"] * 30
    yield "out of bounds", base.assign(hours=[-1e300] * 15 + [np.inf] * 15, income=1e9), labels
    yield "missing numbers", base.assign(hours=np.nan, income=np.nan), labels
    yield "unseen and missing categories", base.assign(colour=["mauve"] * 20 + [None] * 10), labels
    yield "one row", base.head(1), ["a"]


@pytest.mark.filterwarnings("ignore::ldp_aggregator.trainers.statistics.SilentFeatureWarning")
@pytest.mark.parametrize(("case", "frame", "labels"), list(odd_tables()), ids=[case for case, _, _ in odd_tables()])
@pytest.mark.parametrize("epsilon", [0.001, 1.0, 1e4])
def test_odd_tables_give_a_model_that_a_device_accepts(schema, case, frame, labels, epsilon):
    for trainer, parameters in ALL:
        fitted = trainer(schema, epsilon=epsilon, random_state=3, **parameters).fit(frame, labels)
        Model.from_json(fitted.to_json())
        assert np.isfinite(fitted.predict_proba(frame)).all(), case


@pytest.mark.parametrize(
    ("trainer", "parameters", "message"),
    [
        (SufficientStatisticsNB, {"epsilon": 0}, "epsilon must be a finite number above 0"),
        (SufficientStatisticsNB, {"relation": "swap"}, "relation must be add-remove or replace"),
        (SufficientStatisticsNB, {"variant": "published"}, "its only variant is 'sound'"),
        (SufficientStatisticsNB, {"variant": "fast"}, "variant must be sound or published"),
        (SufficientStatisticsNB, {"variance_floor": 0}, "variance_floor must be above 0"),
        (SufficientStatisticsNB, {"numerical_share": 2}, "numerical_share must be above 0 and below 1"),
        (SufficientStatisticsNB, {"smoothing": -1}, "smoothing must be at least 0"),
        (PrivateKMeans, {"schema": None}, "needs a schema"),
        (PrivateKMeans, {"split": "odd"}, "split must be even or optimal"),
        (PrivateKMeans, {"n_clusters": 0}, "at least 1"),
        (PrivateKMeans, {"epsilon": -1}, "finite number above 0"),
        (FederatedNB, {"nodes": 0}, "nodes"),
        (FederatedNB, {"nodes": 2, "groups": 3}, "nodes"),
        (FederatedNB, {"relation": "replace"}, "nodes"),
    ],
)
def test_wrong_parameters_are_refused_with_what_would_be_right(schema, table, trainer, parameters, message):
    with pytest.raises(ValueError, match=message):
        trainer(**{"schema": schema, **parameters}).fit(*table)


def test_the_published_variants_say_what_they_guarantee(schema, table):
    with pytest.warns(PrivacyWarning, match=r"as published, this guarantees epsilon = .*replace the feature values"):
        fitted = GlobalSensitivityNB(schema, epsilon=0.7, variant="published").fit(*table)
    loss = 2 * 2 * math.log(2 * math.exp(0.1) - 1) + 2 * (0.2 + math.log(2 * math.exp(0.109) - 1))
    assert fitted.guarantee_.epsilon == pytest.approx(loss)
    with pytest.warns(PrivacyWarning, match=r"as published, this guarantees no privacy \(none: the published"):
        fitted = SmoothSensitivityNB(schema, variant="published").fit(*table)
    assert fitted.guarantee_.epsilon is None


@pytest.mark.parametrize("trainer", [GlobalSensitivityNB, SmoothSensitivityNB])
def test_sound_variants_promise_epsilon_and_do_not_warn(schema, table, trainer):
    """A feature is called silent where noise of seven deviations hides it: less than once in 10**7 fits."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = trainer(schema, epsilon=0.3).fit(*table)
    assert (fitted.guarantee_.epsilon, fitted.guarantee_.relation) == (0.3, "add or remove one row")


def test_moments_of_a_column_are_exact():
    rng = np.random.default_rng(0)
    steps = np.sort(rng.integers(0, SPAN + 1, size=3_000_000))
    column = MomentColumn(steps)
    assert float(column.mean) == pytest.approx((steps / SPAN).mean(), rel=1e-12)
    assert float(column.variance) == pytest.approx((steps / SPAN).var(), rel=1e-9)
    assert float(MomentColumn(steps[:0]).mean) == 0.5


def test_the_published_sensitivity_is_not_smooth():
    """Two neighbours whose published values differ by more than beta, and one below its local sensitivity."""
    values = np.array([0.5, 0.5, 0.5, 0.5, 0.5])
    mean, _ = published_sensitivities(values, 2.0)
    assert mean < 0.5 / 5
    constant, moved = np.zeros(5), np.array([0.0, 0.0, 0.0, 0.0, 1.0])
    for beta in (0.05, 0.1):
        first, second = (published_sensitivities(column, beta)[1] for column in (constant, moved))
        assert abs(math.log(first / second)) > beta


@pytest.fixture
def read(schema):
    return Schema.read(schema)


def test_the_vector_holds_what_it_says(read):
    frame = pd.DataFrame({"colour": ["red", "mauve"], "hours": [100, np.nan], "income": [-10, 9.9], "age": [54, 0]})
    vector = statistics_of(read, frame, read.classes_of(["a", "c"], 2))
    parts = parts_of(read.label, read.features)
    assert [(part.query, part.kind, vector[part.start : part.stop].tolist()) for part in parts] == [
        ("class counts", "classes", [1, 0, 1]),
        ("colour", "table", [1, 0, 0, 0, 0, 0, 0, 0, 0]),
        ("hours: sum and square", "sum", [GRID, 0, 0]),
        ("hours: sum and square", "square", [0, 0, GRID]),
        ("income", "table", [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        ("age: sum and square", "sum", [0, 0, -GRID]),
        ("age: sum and square", "square", [GRID, 0, 0]),
    ]


def test_one_row_moves_every_query_by_at_most_its_sensitivity(read):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "colour": rng.choice(["red", "blue", "?"], 200),
            "hours": rng.choice([-np.inf, 0, 50, 87.5, 99.9, np.inf, np.nan], 200),  # 87.5 is t = 3/4, the worst of all
            "income": rng.normal(0, 20, 200),
            "age": rng.choice([81.0, 0.0, 30.5, 99.0], 200),  # so is 81
        }
    )
    plans = {relation: plan_noise(read, 1.0, relation) for relation in ("add-remove", "replace")}
    rows = [statistics_of(read, frame.iloc[[i]].reset_index(drop=True), np.array([0])) for i in range(200)]
    loss = {relation: defaultdict(float) for relation in plans}
    for number, part in enumerate(parts_of(read.label, read.features)):
        pieces = np.array([row[part.start : part.stop] for row in rows])
        moved = {"add-remove": np.abs(pieces).sum(axis=1)}
        moved["replace"] = np.abs(pieces[:, None] - pieces[None]).sum(axis=2)
        for relation, plan in ((name, plans[name][number]) for name in plans):
            if plan.scale:
                loss[relation][part.query] = loss[relation][part.query] + moved[relation] / float(plan.scale)
    for relation, queries in loss.items():
        spent = {plan.part.query: float(plan.epsilon) for plan in plans[relation] if plan.scale}
        assert {query: worst.max() for query, worst in queries.items()} == pytest.approx(spent, rel=1e-5)
        assert all(worst.max() <= spent[query] * (1 + 1e-12) for query, worst in queries.items())


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("share", [None, 0.8])
def test_the_noise_spends_exactly_epsilon(read, table, relation, share):
    exact = vector_of(read, table)
    accountant = Accountant(0.7)
    noisy = add_noise(exact, plan_noise(read, 0.7, relation, share), accountant, SeededCoins(np.random.default_rng(0)))
    assert accountant.spent == exact_epsilon(0.7)
    assert (noisy[:3] == exact[:3]).all() == (relation == "replace")
    assert (noisy[3:] != exact[3:]).mean() > 0.8


def test_noise_has_the_planned_variance_everywhere(read):
    """200 releases of nothing, 600 draws a query: a variance's relative error has sd 9 %, 45 % is five of them."""
    plans = plan_noise(read, 2.0, "add-remove")
    nothing = np.zeros((200, parts_of(read.label, read.features)[-1].stop), dtype=np.int64)
    coins = SeededCoins(np.random.default_rng(0))
    noisy = np.array([add_noise(row, plans, Accountant(2.0), coins) for row in nothing])
    for plan in plans:
        drawn = noisy[:, plan.part.start : plan.part.start + 3].astype(float)
        assert (drawn**2).mean() == pytest.approx(plan.variance, rel=0.45)


def vector_of(read, table):
    return statistics_of(read, table[0], read.classes_of(table[1], len(table[0])))


def test_class_sizes_are_pooled_from_every_table_by_inverse_variance(read):
    vector = np.zeros(parts_of(read.label, read.features)[-1].stop, dtype=np.int64)
    places = {part.query: slice(part.start, part.stop) for part in parts_of(read.label, read.features)}
    vector[places["class counts"]] = [100, 100, 200]
    vector[places["colour"]] = [103, 100, 200] + [0] * 6  # three cells a class: a third of the weight
    vector[places["income"]] = [100, 100, 200] + [0] * 9  # four cells a class: a quarter
    plans = plan_noise(read, 1.0, "add-remove")
    pooled = 100 + 3 * (1 / 3) / (1 + 1 / 3 + 1 / 4)
    assert rebuild(read, vector, plans, Options()).prior[0] == pytest.approx(pooled / (300 + pooled))
    assert rebuild(read, vector, plans, Options(pool=False)).prior[0] == 0.25


def test_a_table_with_many_undeclared_values_does_not_count_classes(read, table):
    frame, labels = table
    vector = vector_of(read, (frame.assign(colour="?"), labels))
    shares = rebuild(read, vector, plan_noise(read, 10.0, "add-remove"), Options()).prior
    assert shares == pytest.approx([(labels == name).mean() for name in "abc"], abs=1e-9)


def test_noise_that_explains_the_differences_makes_the_classes_alike(read, table):
    vector = vector_of(read, table)
    hours = [
        rebuild(read, vector, plan_noise(read, epsilon, "add-remove"), options).likelihoods[1]
        for epsilon, options in ((1e-4, Options()), (1e-4, Options(shrink=False)), (1e4, Options()))
    ]
    spread = [max(one.mean) - min(one.mean) for one in hours]
    assert spread[0] < 1e-3 * spread[1]
    assert spread[1] == pytest.approx(spread[2], rel=1e-3)
    assert spread[2] > 30


def test_a_variance_is_not_believed_below_its_noise(read):
    frame = pd.DataFrame({"colour": "red", "hours": [50.0] * 900, "income": 0.0, "age": 54.0})
    vector = statistics_of(read, frame, np.arange(900) % 3)
    floors = [
        rebuild(read, vector, plan_noise(read, epsilon, "add-remove"), Options()).likelihoods[1].variance[0] / 100**2
        for epsilon in (0.1, 10.0, 1e4)
    ]
    assert floors[0] == pytest.approx(1e-3)
    assert floors[2] == pytest.approx(1e-4)
    assert 1e-4 <= floors[1] <= 1e-3


def test_statistics_beyond_reason_give_a_model_all_the_same(read):
    rng = np.random.default_rng(0)
    for scale in (1, GRID, 1 << 60):
        vector = rng.integers(-scale, scale + 1, size=parts_of(read.label, read.features)[-1].stop)
        for options in (Options(), Options(pool=False, shrink=False)):
            model = rebuild(read, vector, plan_noise(read, 1.0, "add-remove"), options)
            assert all(np.isfinite(model.prior))
            type(model).from_json(model.to_json())
