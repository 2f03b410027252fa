"""``ldp-aggregator fit`` and ``node``: every trainer from the shell, and what they refuse."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from ldp_aggregator import NaiveBayes
from ldp_aggregator.cli.program import run
from ldp_aggregator.trainers import FederatedState, SufficientStatisticsNB
from ldp_aggregator.trainers import csv_tables as tables
from protocols import Campaign

DRAFT = {
    "version": 1,
    "title": "Fitted",
    "label": {"name": "class", "classes": ["0", "1"]},
    "features": [
        {"name": "x", "kind": "continuous", "low": 0, "high": 10},
        {"name": "c", "kind": "categorical", "values": ["NA", "2"]},
    ],
    "privacy": {"epsilon": 3},
}
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


def arguments(files, trainer, *more):
    table, draft = str(files / "table.csv"), str(files / "draft.json")
    return ["fit", trainer, table, "--schema", draft, "--epsilon", "5", *more]


@pytest.mark.parametrize("trainer", ["global", "smooth", "sums", "federated"])
def test_every_trainer_prints_its_guarantee_and_writes_a_model(files, trainer, capsys):
    output = files / "model.json"
    assert run(arguments(files, trainer, "--test", str(files / "test.csv"), "--output", str(output))) == 0
    out = capsys.readouterr().out
    assert out.startswith("guarantee: epsilon = 5; relation: add or remove one row; public: the schema")
    assert "class counts" in out
    model = NaiveBayes.from_json(output.read_text())
    assert model.guarantee_.epsilon == 5
    test = pd.read_csv(files / "test.csv", dtype={"class": str, "c": str}, keep_default_na=False, na_values={"x": ""})
    accuracy = (model.predict(test) == test["class"]).mean()
    assert f"accuracy on {files / 'test.csv'}: {accuracy:.4f}" in out
    assert accuracy > 0.9


def test_json_says_the_same(files, capsys):
    assert run(arguments(files, "sums", "--json", "--test", str(files / "test.csv"))) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["trainer"] == "SufficientStatisticsNB"
    assert result["guarantee"]["epsilon"] == 5
    assert sum(result["budget"].values()) == pytest.approx(5)
    assert result["accuracy"] > 0.9


def test_published_variants_warn_and_print_their_true_guarantee(files, capsys):
    assert run(arguments(files, "smooth", "--variant", "published", "--seed", "1")) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("guarantee: no privacy (none: the published sensitivity")
    assert "warning: as published, this guarantees no privacy" in captured.err
    assert "never for release" in captured.err


def test_pieces_of_a_file_give_the_model_of_the_whole(files, monkeypatch, capsys):
    one, other = files / "one.json", files / "other.json"
    assert run(arguments(files, "sums", "--seed", "1", "--output", str(one))) == 0
    chunks = tables.read_chunks
    monkeypatch.setattr("ldp_aggregator.cli.tables.fit.read_chunks", lambda path, schema: chunks(path, schema, rows=7))
    assert run(arguments(files, "sums", "--seed", "1", "--output", str(other))) == 0
    assert one.read_text() == other.read_text()


def test_kmeans_prints_centres_and_a_guarantee(files, capsys):
    assert run(arguments(files, "kmeans", "--clusters", "2", "--json")) == 0
    result = json.loads(capsys.readouterr().out)
    centres = sorted(centre["x"] for centre in result["centres"])
    assert centres == pytest.approx([3, 7], abs=0.6)
    assert run(arguments(files, "kmeans")) == 0
    assert capsys.readouterr().out.startswith("guarantee: epsilon = 5")


@pytest.mark.parametrize("trainer", ["sums", "global"])
def test_a_column_that_is_not_there_is_told_in_one_line(files, trainer, capsys):
    text = (files / "table.csv").read_text()
    (files / "table.csv").write_text(text.replace("x,", "z,", 1))
    assert run(arguments(files, trainer, "--output", str(files / "m.json"))) == 1
    error = capsys.readouterr().err
    assert "no column 'x'" in error
    assert error.count("\n") == 1
    assert not (files / "m.json").exists()


STRANGE_ROWS = {
    "a text for a number": "many,t,2,1\n",
    "an undeclared label": "1.0,t,2,7\n",
    "too short": "1.0\n",
    "too long": "1.0,t,2,1,more,and more\n",
    "empty": "\n",
    "an open quote": '1.0,t,2,"1\n',
    "bytes that are no text": "1.0,t,\udcff\udcc0,1\n",
    "zeros": "1.0,t,\0,1\n",
    "a huge cell": "1.0," + "t" * 200_000 + ",2,1\n",
}


@pytest.mark.parametrize("row", STRANGE_ROWS.values(), ids=STRANGE_ROWS)
@pytest.mark.parametrize("trainer", ["sums", "global", "smooth", "federated", "kmeans"])
def test_no_row_is_an_error(files, trainer, row):
    text = (files / "table.csv").read_text()
    (files / "table.csv").write_text(text + row, encoding="utf-8", errors="surrogateescape")
    assert run(arguments(files, trainer)) == 0


@pytest.mark.parametrize("trainer", ["sums", "global", "smooth", "federated", "kmeans"])
def test_no_rows_are_trained_on_like_any_other_number_of_rows(files, trainer):
    (files / "table.csv").write_text((files / "table.csv").read_text().splitlines()[0] + "\n")
    assert run(arguments(files, trainer)) == 0


def test_a_table_to_test_with_has_rows(files, capsys):
    (files / "test.csv").write_text((files / "test.csv").read_text().splitlines()[0] + "\n")
    assert run(arguments(files, "sums", "--test", str(files / "test.csv"))) == 1
    assert "test.csv: holds no rows" in capsys.readouterr().err


def test_an_undeclared_label_is_never_predicted_right(files, capsys):
    text = (files / "test.csv").read_text()
    header, *rows = text.splitlines()
    (files / "test.csv").write_text("\n".join([header, *rows, *(row[: row.rindex(",")] + ",9" for row in rows)]))
    assert run(arguments(files, "sums", "--json", "--test", str(files / "test.csv"))) == 0
    assert 0.45 < json.loads(capsys.readouterr().out)["accuracy"] <= 0.5


def test_wrong_numbers_and_missing_files_are_told_in_one_line(files, capsys):
    for wrong in ("0", "nan", "inf", "much"):
        with pytest.raises(SystemExit) as stop:
            run([*arguments(files, "sums"), "--epsilon", wrong])
        assert stop.value.code == 2
        assert f"must be a finite number above 0, not '{wrong}'" in capsys.readouterr().err
    (files / "table.csv").unlink()
    assert run(arguments(files, "sums")) == 1
    assert "No such file" in capsys.readouterr().err


def test_nodes_write_shares_that_merge_into_a_model(files, capsys):
    campaign = Campaign.compile(DRAFT)
    (files / "doc.json").write_bytes(campaign.document)
    share = files / "share.msgpack"
    command = ["node", "statistics", str(files / "table.csv"), "--campaign", str(files / "doc.json")]
    assert run([*command, "--id", campaign.id, "--output", str(share)]) == 0
    assert "guarantee: epsilon = 3; relation: add or remove one row" in capsys.readouterr().out
    model = FederatedState(campaign, {"a": share.read_bytes()}).model()
    test = pd.read_csv(files / "test.csv", dtype={"class": str, "c": str}, keep_default_na=False, na_values={"x": ""})
    assert (model.predict(test) == test["class"]).mean() > 0.9
    assert run([*command, "--output", str(share)]) == 1
    assert "exists: send that share again" in capsys.readouterr().err
    assert run([*command, "--id", "A" * 43, "--output", str(files / "second")]) == 1
    assert "SHA-256" in capsys.readouterr().err
    assert not (files / "second").exists()


def test_the_command_and_the_class_agree(files):
    model = files / "m.json"
    assert run(arguments(files, "sums", "--seed", "9", "--output", str(model))) == 0
    frame = pd.read_csv(files / "table.csv", dtype={"class": str, "c": str}, keep_default_na=False, na_values={"x": ""})
    with pytest.warns(UserWarning, match="never for release"):
        fitted = SufficientStatisticsNB(DRAFT_SCHEMA, epsilon=5, random_state=9).fit(frame, frame["class"])
    assert fitted.to_json() == model.read_text()
