"""``ldp-aggregator fit`` and ``node``: every trainer from the shell, and what they refuse."""

import json

import numpy as np
import pandas as pd
import pytest
from drafts import draft, number, text

from ldp_aggregator import NaiveBayes
from ldp_aggregator.cli import tables
from ldp_aggregator.trainers import FederatedState, PrivateKMeans, SufficientStatisticsNB
from ldp_protocols import Campaign

FEATURES = number("x", 0, 10, missing=True), text("c", "NA", "2", missing=True)
DRAFT = draft(*FEATURES, label={"name": "class", "classes": ["0", "1"]}, privacy={"epsilon": 3})
DRAFT_SCHEMA = {"label": DRAFT["label"], "features": DRAFT["features"]}


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(1)
    classes = rng.integers(0, 2, size=2000)
    frame = pd.DataFrame(
        {
            "x": np.where(rng.random(2000) < 0.01, np.nan, 3 + 4 * classes + rng.normal(0, 1, 2000)),
            "ignored": "text",
            "c": np.where(rng.random(2000) < 0.8, np.array(["NA", "2"])[classes], "2"),
            "class": classes,
        }
    )
    frame.head(1500).to_csv(tmp_path / "table.csv", index=False)
    frame.tail(500).to_csv(tmp_path / "test.csv", index=False)
    (tmp_path / "draft.json").write_text(json.dumps(DRAFT))
    return tmp_path


def read(path):
    return pd.read_csv(path, dtype={"class": str, "c": str}, keep_default_na=False, na_values={"x": ""})


@pytest.fixture
def fit(run, files):
    """Fits to the table: exit code, standard output and standard error."""

    def with_options(method, *more):
        given = (files / "table.csv", "--schema", files / "draft.json", "--epsilon", 5, "--seed", 1)
        return run("fit", *given, *(("--method", method) if method else ()), *more)

    return with_options


@pytest.mark.parametrize("trainer", ["global", "smooth", "sums", "federated"])
def test_every_trainer_prints_its_guarantee_and_writes_a_model(fit, files, trainer):
    code, out, _ = fit(trainer, "--test", files / "test.csv", "--output", files / "model.json")
    assert code == 0
    assert out.startswith("guarantee: epsilon = 5; relation: add or remove one row; public: the schema")
    assert "class counts" in out
    model = NaiveBayes.from_json((files / "model.json").read_text())
    assert model.guarantee_.epsilon == 5
    test = read(files / "test.csv")
    accuracy = (model.predict(test) == test["class"]).mean()
    assert f"accuracy on {files / 'test.csv'}: {accuracy:.4f}" in out
    assert accuracy > 0.9


def test_sums_is_what_is_fitted_where_no_method_is_named_and_a_seed_is_warned_about(fit, files):
    test = ("--json", "--test", files / "test.csv")
    code, out, err = fit(None, *test)
    assert (code, out) == fit("sums", *test)[:2]
    result = json.loads(out)
    assert (result["trainer"], result["guarantee"]["epsilon"]) == ("SufficientStatisticsNB", 5)
    assert sum(result["budget"].values()) == pytest.approx(5)
    assert result["accuracy"] > 0.9
    assert "warning: noise from random_state can be taken off" in err
    assert "never for release" in err
    assert "relation: replace" in fit("global", "--relation", "replace")[1]
    assert json.loads(fit("federated", "--nodes", 3, "--json")[1])["accuracy"] is None


@pytest.mark.parametrize(
    ("method", "flag", "takers"),
    [
        ("sums", ["--nodes", 3], "federated"),
        ("sums", ["--clusters", 3], "kmeans"),
        ("federated", ["--relation", "replace"], "sums or global or smooth"),
        ("kmeans", ["--test", "TEST"], "sums or global or smooth or federated"),
        (None, ["--nodes", 1], "federated"),
    ],
)
def test_a_flag_of_another_method_is_refused_with_the_methods_that_take_it(fit, files, method, flag, takers):
    code, out, err = fit(method, *flag, "--output", files / "model.json")
    assert (code, out) == (2, "")
    assert err == f"ldp-aggregator: {flag[0]} goes with --method {takers}, not with {method or 'sums'}\n"
    assert not (files / "model.json").exists()


def test_pieces_of_a_file_give_the_model_of_the_whole_which_is_the_classs(fit, files, monkeypatch):
    one, other = files / "one.json", files / "other.json"
    assert fit("sums", "--output", one)[0] == 0
    chunks = tables.read_chunks
    monkeypatch.setattr(
        "ldp_aggregator.cli.tables.read_chunks",
        lambda path, schema, reading, seen: chunks(path, schema, 7, reading, seen),
    )
    assert fit("sums", "--output", other)[0] == 0
    frame = read(files / "table.csv")
    with pytest.warns(UserWarning, match="never for release"):
        fitted = SufficientStatisticsNB(DRAFT_SCHEMA, epsilon=5, random_state=1).fit(frame, frame["class"])
    assert one.read_text() == other.read_text() == fitted.to_json()


def test_kmeans_prints_centres_and_a_guarantee_and_writes_them(fit, files):
    result = json.loads(fit("kmeans", "--clusters", 2, "--json")[1])
    assert sorted(centre["x"] for centre in result["centres"]) == pytest.approx([3, 7], abs=0.6)
    assert fit("kmeans", "--output", files / "centres.json")[1].startswith("guarantee: epsilon = 5")
    assert PrivateKMeans.from_json((files / "centres.json").read_text()).cluster_centers_.shape == (3, 1)


def test_wrong_numbers_missing_files_and_columns_that_are_not_there_are_told_in_one_line(fit, files):
    table, model = files / "table.csv", files / "m.json"
    for wrong in ("0", "nan", "inf", "much"):
        code, _, err = fit("sums", "--epsilon", wrong)
        assert (code, f"must be a finite number above 0, not '{wrong}'" in err) == (2, True)
    table.write_text(table.read_text().replace("x,", "z,", 1))
    for trainer in ("sums", "global"):
        code, _, err = fit(trainer, "--output", model)
        assert (code, "no column 'x'" in err, err.count("\n"), model.exists()) == (1, True, 1, False)
    table.unlink()
    code, _, err = fit("sums")
    assert (code, "no such file" in err) == (1, True)


STRANGE_ROWS = ["many,t,2,1", "1.0,t,2,7", "1.0", "1.0,t,2,1,more,and more", "", "1.0,t,\udcff\udcc0,1", "1.0,t,\0,1"]
STRANGE_ROWS += ["1.0," + "t" * 200_000 + ",2,1", '1.0,t,2,"1']
"""An open quote is the last: whatever follows is within it."""


@pytest.mark.parametrize("trainer", ["sums", "global", "smooth", "federated", "kmeans"])
def test_no_row_is_an_error_nor_is_it_one_that_there_are_none(fit, files, trainer):
    rows = (files / "table.csv").read_text()
    (files / "table.csv").write_text(rows + "\n".join([*STRANGE_ROWS, ""]), encoding="utf-8", errors="surrogateescape")
    assert fit(trainer)[0] == 0
    (files / "table.csv").write_text(rows.splitlines()[0] + "\n")
    assert fit(trainer)[0] == 1
    assert fit(trainer, "--anyway")[0] == 0


def test_a_table_to_test_with_has_rows_of_which_an_undeclared_label_is_never_predicted_right(fit, files):
    header, *rows = (files / "test.csv").read_text().splitlines()
    (files / "test.csv").write_text(header + "\n")
    code, _, err = fit("sums", "--test", files / "test.csv")
    assert (code, "test.csv: holds no rows" in err) == (1, True)
    (files / "test.csv").write_text("\n".join([header, *rows, *(row[: row.rindex(",")] + ",9" for row in rows)]))
    assert 0.45 < json.loads(fit("sums", "--json", "--test", files / "test.csv")[1])["accuracy"] <= 0.5


def test_a_schema_may_be_toml_and_what_is_no_draft_is_told_with_its_file(run, files):
    path, given = files / "draft.toml", ("fit", files / "table.csv", "--epsilon", 5)
    path.write_text(
        'label = {name = "class", classes = ["0", "1"]}\n'
        'features = [{name = "x", kind = "continuous", low = 0, high = 10}]\n'
    )
    assert run(*given, "--schema", path)[0] == 0
    for wrong, name in (("[", "draft.toml"), ("[]", "draft.json")):
        (files / name).write_text(wrong)
        code, _, err = run(*given, "--schema", files / name)
        assert (code, err.count("\n"), f"{files / name}: " in err) == (1, 1, True)


def test_a_node_writes_a_share_that_makes_a_model(run, files):
    """Its coins are live: to move a mean by a quarter takes noise of 25 scales in one of a dozen sums, which is drawn
    less than once in 10**9 runs, and .9 would take more.
    """
    campaign, share = Campaign.compile(DRAFT), files / "share.msgpack"
    (files / "doc.json").write_bytes(campaign.document)
    code, out, _ = run("node", "submit", files / "table.csv", "--campaign", files / "doc.json", "--output", share)
    assert (code, "guarantee: epsilon = 3; relation: add or remove one row" in out) == (0, True)
    test, model = read(files / "test.csv"), FederatedState(campaign, {"a": share.read_bytes()}).model()
    assert (model.predict(test) == test["class"]).mean() > 0.9
