"""``ldp-simulate data check``: what fits, what differs and what is missing, by file."""

import gzip
import hashlib
import json

import pytest

from ldp_simulations.__main__ import main
from ldp_simulations.benchmarks import DATASETS, draft_of, files_of, people_of
from ldp_simulations.commands.data import state_of
from ldp_simulations.tables import TableError

TABLE = b"a,class\nx,0\ny,1\n"
OTHER = b"a,class\nx,1\ny,1\n"


def digest(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """One folder with a file of each state, and descriptions of these alone."""
    packed = {name: gzip.compress(TABLE, level, mtime=0) for name, level in (("same", 9), ("repacked", 1))}
    files = [
        {"file": f"{name}.csv.gz", "sha256": digest(gzip.compress(TABLE, 9, mtime=0)), "table_sha256": digest(TABLE)}
        for name in ("same", "repacked", "altered", "torn", "text", "none")
    ]
    told = {"title": "T", "source": "Someone", "terms": "none", "classes": ["0", "1"], "columns": [], "files": files}
    for name in list(DATASETS):
        monkeypatch.delitem(DATASETS, name)
    monkeypatch.setitem(DATASETS, "some", told)
    contents = packed | {"altered": gzip.compress(OTHER), "torn": packed["same"][:-9], "text": TABLE}
    for name, content in contents.items():
        (tmp_path / f"{name}.csv.gz").write_bytes(content)
    return tmp_path


def test_each_file_fits_differs_or_is_missing_and_one_that_does_not_fit_is_told_by_the_exit_code(folder, capsys):
    states = {"same": "fits", "repacked": "fits", "altered": "differs", "torn": "differs", "text": "differs"}
    states |= {"none": "missing"}
    assert main(["data", "check", str(folder), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert {one["file"]: one["state"] for one in found} == {f"{name}.csv.gz": state for name, state in states.items()}
    assert {(one["source"], one["terms"], one["data_set"]) for one in found} == {("Someone", "none", "some")}
    assert main(["data", "check", str(folder)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert [line.split() for line in said if ".csv.gz" in line] == [[s, f"{name}.csv.gz"] for name, s in states.items()]
    assert (said.count("           from:  Someone"), said[-1]) == (1, "2 of 6 files fit")


def test_all_that_is_there_and_fits_ends_with_0(folder, monkeypatch, capsys):
    monkeypatch.setitem(DATASETS["some"], "files", DATASETS["some"]["files"][:2])
    assert main(["data", "check", str(folder)]) == 0
    assert capsys.readouterr().out.endswith("2 of 2 files fit\n")


def test_no_folder_is_one_line(tmp_path, capsys):
    assert main(["data", "check", str(tmp_path / "no")]) == 1
    assert "no such folder" in capsys.readouterr().err


def test_people_whose_file_is_missing_are_told_what_says_where_it_is_from(tmp_path, monkeypatch):
    monkeypatch.setenv("LDP_BAYES_DATA", str(tmp_path))
    with pytest.raises(TableError, match=r"car\.csv\.gz: no such file; 'ldp-simulate data check .*' says where"):
        people_of("car", draft_of("car"))


def test_every_data_set_says_where_it_is_from_under_which_terms_and_its_public_bounds():
    assert len(dict.fromkeys(file["file"] for _, file in files_of())) == len(list(files_of())) == 20
    for name, one in DATASETS.items():
        assert one["source"], name
        assert one["terms"], name
        assert all({"file", "rows", "sha256", "table_sha256"} == file.keys() for file in one["files"]), name
        assert all(("domain" in column) != ("values" in column) for column in one["columns"]), name


def test_the_tables_of_the_tests_are_those_that_are_described(uci_folder):
    files = [file for _, file in files_of() if "/" not in file["file"]]
    assert {state_of(uci_folder / file["file"], file) for file in files} == {"fits"}
