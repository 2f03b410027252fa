"""A row moves only itself: the premise of every central epsilon, on every trainer's statistics; and no rows are a
number of rows like any other.

``statistics_of(T + row) - statistics_of(T) == statistics_of(row)``, and replacing a row is removing one and adding one.
"""

import csv
import warnings
from collections import Counter
from functools import partial

import numpy as np
import pandas as pd
import pytest
from columns import ANYTHING, columns
from hypothesis import given, reject
from hypothesis import strategies as st

from ldp_aggregator.trainers import (
    FederatedNB,
    GlobalSensitivityNB,
    PrivateKMeans,
    SmoothSensitivityNB,
    SufficientStatisticsNB,
    decode_share,
    model_from_statistics,
    moment_training,
    node_statistics,
    private_count,
    private_mean,
    queries,
    statistics,
)
from ldp_aggregator.trainers import federation as state
from ldp_aggregator.trainers.accountant import Accountant
from ldp_aggregator.trainers.kmeans import _points
from ldp_aggregator.trainers.randomness import coins_of
from ldp_aggregator.trainers.schemas import Schema, read_chunks
from ldp_aggregator.trainers.statistics import (
    SilentFeatureWarning,
    SilentLabelWarning,
    add_noise,
    plan_noise,
    silent_features,
    silent_label,
    silent_numbers,
    statistics_of,
    statistics_of_chunks,
)
from ldp_protocols import Campaign
from ldp_protocols.document.model import Model

LABEL = {"name": "y", "classes": ["0", "true", "red"]}
FEATURES = [
    {"name": "flag", "kind": "categorical", "values": ["0", "1", "2.5", "red"]},
    {"name": "word", "kind": "categorical", "values": ["true", "false", "Cafe\u0301", "missing"]},
    {"name": "bins", "kind": "continuous", "low": -1, "high": 3, "bins": 5},
    {"name": "real", "kind": "continuous", "low": -1, "high": 2},
    {"name": "more", "kind": "continuous", "low": 0, "high": 50},
]
PROJECTION = {
    "method": "pca",
    "inputs": ["real", "more"],
    "mean": [0.3, 20],
    "scale": [1.7, 9],
    "matrix": [[0.6, 0.8], [-0.8, 0.6]],
    "outputs": [
        {"name": "first", "kind": "continuous", "low": -3, "high": 3},
        {"name": "second", "kind": "continuous", "low": -2, "high": 2, "bins": 4},
    ],
    "fitted_on": "public",
}
DRAFT = {"version": 1, "title": "t", "label": LABEL, "features": FEATURES, "privacy": {"epsilon": 1.0}}
DRAFTS = {"plain": DRAFT, "projected": {**DRAFT, "projection": PROJECTION}}
NAMES = [feature["name"] for feature in FEATURES]
TABULAR = {"label": LABEL, "features": FEATURES}

# pandas 2 warns that the dtype of what is put together will be another in pandas 3; both must read alike.
PANDAS_3 = "ignore:The behavior of (DataFrame|array) concatenation with empty:FutureWarning"
pytestmark = pytest.mark.filterwarnings(PANDAS_3, "ignore::ldp_aggregator.trainers.randomness.PrivacyWarning")


def cell(held, *, boxed):
    try:
        return pd.Series([held], dtype=object if boxed else None)
    except OverflowError:  # pandas 2.2 finds no dtype for 10**400
        return pd.Series([held], dtype=object)


@st.composite
def tables(draw):
    """A table with its labels, a row with its label, and the table with the row appended, in one of many ways."""
    size = draw(st.integers(0, 5))
    frame = pd.DataFrame({name: draw(columns(size)) for name in NAMES})
    labels = draw(columns(size))
    cells, label = [draw(ANYTHING) for _ in NAMES], draw(ANYTHING)
    boxed = draw(st.booleans())
    row = pd.DataFrame({name: cell(held, boxed=boxed) for name, held in zip(NAMES, cells, strict=True)})
    its_label = cell(label, boxed=boxed)
    before, after = (row, frame), (its_label, labels)
    first = draw(st.booleans())
    try:
        longer = pd.concat(before if first else before[::-1], ignore_index=True)
        longer_labels = pd.concat(after if first else after[::-1], ignore_index=True)
    except (OverflowError, TypeError, ValueError):  # pandas 2.2 puts no texts and no 10**400 into a sparse column
        reject()
    return (frame, labels), (row, its_label), (longer, longer_labels)


def schema_of(draft):
    return Schema.read({name: draft.get(name) for name in ("label", "features", "projection")})


def vector_of(draft, table):
    schema = schema_of(draft)
    return statistics_of(schema, table[0], schema.classes_of(table[1], len(table[0])))


@pytest.mark.parametrize("draft", DRAFTS.values(), ids=DRAFTS)
@given(tables())
def test_a_row_adds_its_own_statistics_whatever_it_does_to_the_dtypes(draft, case):
    table, row, longer = case
    assert (vector_of(draft, longer) - vector_of(draft, table)).tolist() == vector_of(draft, row).tolist()


@given(tables(), st.data())
def test_a_table_in_pieces_is_the_table(case, data):
    _, _, (frame, labels) = case
    cut = data.draw(st.integers(0, len(frame)))
    pieces = [(frame.iloc[part], labels.iloc[part]) for part in (slice(None, cut), slice(cut, None))]
    vector, rows = statistics_of_chunks(Schema.read(TABULAR), pieces)
    assert vector.tolist() == vector_of(DRAFT, (frame, labels)).tolist()
    assert rows == len(frame)


def no_noise(monkeypatch):
    """Every trainer without its noise: what is left is what a row can move."""

    def nothing(scale, count, coins):
        return np.zeros(count, dtype=np.int64)

    for module in (statistics, state, queries):
        monkeypatch.setattr(module, "discrete_laplace", nothing)


def released_by(trainer, table):
    """The statistics of which a trainer makes its model, its noise left out; several groups one after the other."""
    released = []
    with pytest.MonkeyPatch.context() as patch:
        no_noise(patch)
        for module in (model_from_statistics, moment_training):
            patch.setattr(module, "rebuild", recorded(module.rebuild, lambda arguments: [arguments[1]], released))
        groups = recorded(state.robust_model, lambda arguments: [g.totals for g in arguments[2]], released)
        patch.setattr(state, "robust_model", groups)
        trainer.fit(*table)
    return np.concatenate(released)


def recorded(function, kept, found):
    def wrapped(*arguments, **more):
        found.extend(kept(arguments))
        return function(*arguments, **more)

    return wrapped


TRAINERS = {
    "sums": (SufficientStatisticsNB, {}),
    "sums, replace": (SufficientStatisticsNB, {"relation": "replace"}),
    "global": (GlobalSensitivityNB, {}),
    "global, replace": (GlobalSensitivityNB, {"relation": "replace"}),
    "smooth": (SmoothSensitivityNB, {}),
    "smooth, replace": (SmoothSensitivityNB, {"relation": "replace"}),
    "federated": (FederatedNB, {"nodes": 3}),
    "federated, groups": (FederatedNB, {"nodes": 5, "groups": 3}),
    "global, published": (GlobalSensitivityNB, {"variant": "published"}),
    "smooth, published": (SmoothSensitivityNB, {"variant": "published"}),
    "federated, published": (FederatedNB, {"nodes": 5, "variant": "published"}),
}


def made(trainer, schema, **more):
    kind, parameters = TRAINERS[trainer]
    return kind(schema, **parameters, **more)


SOUND = {name: made(name, TABULAR) for name in list(TRAINERS)[:7]}


def share_of(table):
    campaign = Campaign.compile(DRAFT)
    with pytest.MonkeyPatch.context() as patch:
        no_noise(patch)
        return decode_share(node_statistics(campaign, *table), campaign)


@pytest.mark.parametrize(
    "sent_by", [*(partial(released_by, one) for one in SOUND.values()), share_of], ids=[*SOUND, "node"]
)
@given(tables())
def test_every_trainer_and_every_node_takes_a_row_for_itself(sent_by, case):
    table, row, longer = case
    assert (sent_by(longer) - sent_by(table)).tolist() == vector_of(DRAFT, row).tolist()


@given(tables(), st.integers(0, 3))
def test_a_row_goes_to_one_group_of_nodes_and_moves_no_other_row_to_another(case, seed):
    (frame, labels), row, _ = case
    longer = [pd.concat(parts, ignore_index=True) for parts in zip((frame, labels), row, strict=True)]
    trainer = FederatedNB(TABULAR, nodes=4, groups=2, random_state=seed)
    moved = (released_by(trainer, longer) - released_by(trainer, (frame, labels))).reshape(2, -1).tolist()
    own = vector_of(DRAFT, row).tolist()
    assert sorted(moved) == sorted([own, [0] * len(own)])


@pytest.mark.parametrize("draft", DRAFTS.values(), ids=DRAFTS)
@given(tables())
def test_means_and_variances_and_clusters_are_of_the_same_numbers_and_one_more(draft, case):
    schema = schema_of(draft)

    def numbers_of(table):
        frame, labels = table
        classes = schema.classes_of(labels, len(frame))
        found = Counter(
            (feature.name, c, step)
            for feature in schema.gaussians
            for c, column in enumerate(moment_training._columns(schema, feature.name, frame, classes))
            for step in column.steps.tolist()
        )
        return found, Counter(map(tuple, _points(schema.gaussians, schema.prepare(frame)).T.tolist()))

    for before, own, after in zip(*map(numbers_of, case), strict=True):
        assert after == before + own


@given(st.lists(ANYTHING, max_size=5), ANYTHING, st.booleans())
def test_a_count_and_a_mean_take_a_row_for_itself(values, value, in_a_column):
    def answers_of(answers):
        column = pd.Series(answers) if in_a_column else answers
        totals = []
        with pytest.MonkeyPatch.context() as patch:
            no_noise(patch)
            patch.setattr(queries, "release", lambda total, *rest: totals.append(total) or total)
            counted = private_count(column, epsilon=1.0)
            private_mean(column, low=-1, high=3, epsilon=1.0, relation="add-remove")
        return [counted, *totals]

    before, own, after = answers_of(values), answers_of([value]), answers_of([*values, value])
    assert [a - b for a, b in zip(after, before, strict=True)] == own


LINES = st.lists(
    st.text(' 01.5,"\n\r\0ered\u0301', max_size=4) | st.sampled_from(["1", "red", "true", "2.5", "\ufffd"]), max_size=8
)


@given(st.lists(LINES, max_size=6), LINES, st.integers(1, 3))
def test_a_file_read_in_pieces_takes_a_row_for_itself(tmp_path_factory, lines, line, rows):
    schema = Schema.read(TABULAR)
    path = tmp_path_factory.mktemp("rows") / "table.csv"

    def vector_of_file(*written):
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([["y", "unused", *NAMES], *written])
        return statistics_of_chunks(schema, read_chunks(path, schema, rows=rows))[0]

    own = vector_of_file(line)
    assert (vector_of_file(*lines, line) - vector_of_file(*lines)).tolist() == own.tolist()
    assert (vector_of_file(line, *lines) - vector_of_file(*lines)).tolist() == own.tolist()


@pytest.mark.parametrize("kind", [float, object])
@given(
    st.lists(st.lists(st.sampled_from([0.0, 1.0, -1.0, 2.5, 40.0, float("nan")]), min_size=6, max_size=6), min_size=1)
)
def test_an_array_is_the_table_of_its_cells(kind, rows):
    array = np.array(rows, dtype=kind)
    found = released_by(SufficientStatisticsNB(TABULAR), (array[:, :5], array[:, 5]))
    lists = released_by(SufficientStatisticsNB(TABULAR), ([row[:5] for row in rows], [row[5] for row in rows]))
    each = [(pd.DataFrame([row[:5]], columns=NAMES, dtype=object), pd.Series(row[5:], dtype=object)) for row in rows]
    assert found.tolist() == lists.tolist() == sum(vector_of(DRAFT, one) for one in each).tolist()


def test_a_list_with_one_text_keeps_its_numbers():
    table = ([[1.0, "true", 0, 1, 1], ["red", True, "2", None, 2]], ["red", 0.0])
    one, other = (released_by(SufficientStatisticsNB(TABULAR), ([table[0][i]], [table[1][i]])) for i in (0, 1))
    assert released_by(SufficientStatisticsNB(TABULAR), table).tolist() == (one + other).tolist()
    assert one[: len(LABEL["classes"])].tolist() == [0, 0, 1]


@pytest.mark.parametrize("trainer", SOUND.values(), ids=SOUND)
def test_no_rows_and_rows_without_a_declared_label_are_trained_on_as_nothing(trainer):
    empty = pd.DataFrame({name: [] for name in NAMES})
    strangers = pd.DataFrame({name: [1, 2.5] for name in NAMES}), ["blue", None]
    for table in ((empty, []), strangers, (np.empty((0, 5)), np.empty(0))):
        assert not released_by(trainer, table).any()
        assert trainer.fit(*table).guarantee_.epsilon == 1.0
    assert trainer.predict(strangers[0]).shape == (2,)


@pytest.mark.filterwarnings(
    "ignore:Concatenating sparse arrays", "ignore:Allowing arbitrary scalar fill_value", "ignore:The .generic. unit"
)
def test_a_sparse_column_of_time_spans_is_missing_like_any_other():
    """Of such a column pandas takes no rows: ``frame.loc`` raises."""
    spans = pd.concat([pd.Series(pd.arrays.SparseArray([0])), pd.Series([pd.Timedelta(1)])], ignore_index=True)
    frame = pd.DataFrame({"more": spans})
    schema = Schema.read({"label": LABEL, "features": FEATURES[-1:]})
    assert statistics_of(schema, frame, np.array([-1, 0])).tolist()[:3] == [1, 0, 0]


COLUMNS = ["colour", "hours", "income", "age"]
EMPTY = {
    "no columns' types": (pd.DataFrame(columns=COLUMNS), []),
    "doubles": (pd.DataFrame({name: np.zeros(0) for name in COLUMNS}), np.zeros(0)),
    "an array": (np.zeros((0, 4)), pd.Series([], dtype=object)),
}


@pytest.mark.parametrize("empty", list(EMPTY))
@pytest.mark.parametrize("trainer", list(TRAINERS))
def test_every_trainer_learns_from_no_rows_a_model_that_a_device_accepts_by_the_queries_of_one_row(
    schema, table, trainer, empty
):
    rows, labels = EMPTY[empty]
    fitted = made(trainer, schema, epsilon=0.5, random_state=1).fit(rows, labels)
    Model.from_json(fitted.to_json())
    assert sum(fitted.budget_.values()) == pytest.approx(0.5), "as much is spent as on any table"
    assert fitted.predict_proba(table[0]).sum(axis=1) == pytest.approx(np.ones(len(table[0])))
    of_one_row = made(trainer, schema, epsilon=0.5, random_state=3).fit(table[0].head(1), table[1].head(1))
    assert (of_one_row.guarantee_, [*of_one_row.budget_.items()]) == (fitted.guarantee_, [*fitted.budget_.items()])


def test_of_no_rows_a_trainer_releases_noise_k_means_finds_centres_and_a_node_sends_a_share_like_any(schema, table):
    frame, labels = EMPTY["no columns' types"]
    models = {SufficientStatisticsNB(schema, random_state=i).fit(frame, labels).to_json() for i in range(8)}
    assert len(models) == 8
    clusters = PrivateKMeans(schema, n_clusters=4, random_state=1).fit(frame)
    assert clusters.cluster_centers_.shape == (4, 2)
    assert sum(clusters.budget_.values()) == pytest.approx(1.0)
    campaign = Campaign.compile({"version": 1, "title": "Federated", **schema, "privacy": {"epsilon": 2}})
    share = decode_share(node_statistics(campaign, frame, pd.Series(labels, dtype=object)), campaign)
    assert len(share) == len(decode_share(node_statistics(campaign, *table), campaign))
    assert share.any()


SCHEMA = {
    "label": {"name": "y", "classes": ["a", "b"]},
    "features": [
        {"name": "colour", "kind": "categorical", "values": ["red", "blue"]},
        {"name": "smoker", "kind": "categorical", "values": ["yes", "no"]},
        {"name": "size", "kind": "continuous", "low": 0, "high": 1},
    ],
}
ROWS = 4000
FRAME = pd.DataFrame({"colour": ["red", "blue"] * (ROWS // 2), "smoker": True, "size": 0.7})
LABELS = pd.Series(["a", "a", "b", "b"] * (ROWS // 4))


@pytest.mark.parametrize("trainer", [name for name in SOUND if name != "smooth, replace"])
def test_a_feature_that_no_row_expresses_is_named_and_no_other(trainer):
    """With seeds: noise that hides it is drawn less than once in 25,000 fits, and that is too often."""
    with pytest.warns(SilentFeatureWarning, match="declared value of 'smoker': compare"):
        made(trainer, SCHEMA, random_state=1).fit(FRAME, LABELS)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SilentFeatureWarning)
        for frame, labels in ((FRAME.assign(smoker="yes"), LABELS), (FRAME.head(2), LABELS.head(2)), (FRAME[:0], [])):
            made(trainer, SCHEMA, random_state=1).fit(frame, labels)


def test_what_is_told_follows_from_the_noisy_numbers_alone_and_a_node_is_told_before_it_sends():
    schema = Schema.read(SCHEMA)
    plans = plan_noise(schema, 1.0, "add-remove")
    exact = statistics_of(schema, FRAME, schema.classes_of(LABELS, ROWS))
    assert silent_features(exact, plans) == ("smoker",)
    assert silent_features(exact, plans, copies=ROWS) == (), "more noise hides it"
    (smoker,) = (plan for plan in plans if plan.part.query == "smoker")
    spread = (smoker.variance * (smoker.part.stop - smoker.part.start)) ** 0.5
    for total, silent in ((4.9, True), (-4.9, True), (5.1, False)):
        noisy = exact.copy()
        noisy[smoker.part.start] = round(total * spread)
        assert silent_features(noisy, plans) == (("smoker",) if silent else ())
    assert silent_features(np.zeros_like(exact), plans) == ()
    campaign = Campaign.compile({"version": 1, "title": "t", **SCHEMA, "privacy": {"epsilon": 1}})
    with pytest.warns(SilentFeatureWarning, match="'smoker'"):
        node_statistics(campaign, FRAME, LABELS, random_state=1)


def healthy(rows, draw):
    """Rows of :data:`SCHEMA` that say something of their class."""
    labels = draw.choice(["a", "b"], rows)
    frame = pd.DataFrame(
        {
            "colour": draw.choice(["red", "blue"], rows),
            "smoker": draw.choice(["yes", "no"], rows),
            "size": np.clip(np.where(labels == "a", 0.4, 0.6) + draw.normal(0, 0.1, rows), 0, 1),
        }
    )
    return frame, pd.Series(labels)


SILENT = {
    "label": (lambda frame, labels: (frame, labels.str.upper()), silent_label),
    "integer labels": (lambda frame, labels: (frame, (labels == "a").astype(str)), silent_label),
    "numbers": (lambda frame, labels: (frame.assign(size="0,5"), labels), lambda *of: silent_numbers(*of)[0]),
    "ends": (lambda frame, labels: (frame.assign(size=50), labels), lambda *of: silent_numbers(*of)[1]),
}


@pytest.mark.parametrize("name", SILENT)
@pytest.mark.parametrize("fits", [50, pytest.param(2000, marks=pytest.mark.long)])
def test_of_400_rows_at_epsilon_1_what_is_silent_is_told_in_99_of_100_fits_and_what_is_not_in_1_at_most(name, fits):
    """With seeds. Noise of the laws of a fit; the smallest schema that has all, but one of a label, may have more."""
    change, find = SILENT[name]
    features = SCHEMA["features"] if "label" in name else SCHEMA["features"][1:]
    schema = Schema.read({**SCHEMA, "features": features})
    plans = plan_noise(schema, 1.0, "add-remove")
    frame, labels = healthy(400, np.random.default_rng(5))
    told = []
    for rows in (change(frame, labels), (frame, labels)):
        exact = statistics_of(schema, rows[0], schema.classes_of(rows[1], 400))
        noisy = (add_noise(exact, plans, Accountant(1.0), coins_of(seed)) for seed in range(fits))
        told.append(sum(bool(find(one, plans)) for one in noisy))
    assert told[0] >= 0.99 * fits - 1
    assert told[1] <= 0.01 * fits


def test_a_label_that_no_row_holds_as_declared_is_told_by_every_trainer_and_by_a_node():
    wrong = LABELS.str.upper()
    frame = FRAME.assign(smoker="yes")
    for trainer in SOUND:
        if "replace" not in trainer:
            with pytest.warns(SilentLabelWarning, match="no row holds a declared class"):
                made(trainer, SCHEMA, random_state=1).fit(frame, wrong)
    campaign = Campaign.compile({"version": 1, "title": "t", **SCHEMA, "privacy": {"epsilon": 1}})
    with pytest.warns(SilentLabelWarning):
        node_statistics(campaign, frame, wrong, random_state=1)


def test_a_frame_of_another_library_is_taken_by_the_names_of_its_columns():
    class Other:
        """The least of a table of polars or Arrow."""

        def __init__(self, frame):
            self.frame = frame

        def to_pandas(self):
            return self.frame

        def __array__(self, *_, **__):
            raise AssertionError("an array has no names")

    frame, labels = healthy(400, np.random.default_rng(5))
    backwards = Other(frame[["size", "smoker", "colour"]])
    fitted = made("sums", SCHEMA, random_state=1).fit(frame, labels)
    other = made("sums", SCHEMA, random_state=1).fit(backwards, Other(labels))
    assert other.to_json() == fitted.to_json()
    assert (other.predict_proba(backwards) == fitted.predict_proba(frame)).all()
