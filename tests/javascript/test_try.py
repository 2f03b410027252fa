"""Tables and vectors of the page that explains by doing: what its command makes, and what the server computes."""

import importlib.util
import json
from collections import Counter
from pathlib import Path

import pytest

from ldp_aggregator import Tally
from ldp_protocols import Campaign

FOLDER = Path(__file__).resolve().parents[2] / "javascript" / "try"
TABLES = json.loads((FOLDER / "tables.json").read_text(encoding="utf-8"))
VECTORS = json.loads((FOLDER / "vectors.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def write():
    """The module of the documented command."""
    spec = importlib.util.spec_from_file_location("write_try", FOLDER / "write.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def source(write, name):
    return next(one for one in (write.SLEEP, write.KEYBOARD, write.TUMOUR) if one["name"] == name)


def parts(write, table):
    """Features, classes, people who answer and people held out."""
    features, people, held_out = (write.measured if "cuts" in table else write.invented)(table)
    return features, table["label"][1], people, held_out


def close(found, wanted):
    """Whether two JSON documents are equal, numbers to 1e-12."""
    if isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(close(found[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(close, found, wanted))
    return found == (pytest.approx(wanted, abs=1e-12) if isinstance(wanted, float) else wanted)


def tally_of(campaign, vector):
    tally = Tally(campaign)
    tally.n[:] = vector["n"]
    for counts, wanted in zip(tally.counts, vector["counts"], strict=True):
        counts[:] = wanted
    return tally


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table["name"])
def test_people_and_campaigns_are_those_of_the_command(write, table):
    its = source(write, table["name"])
    features, classes, people, held_out = parts(write, its)
    assert (table["people"], table["held_out"]) == (write.counted(people), write.counted(held_out))
    assert {one["name"]: one["values"] for one in table["features"]} == features
    assert table["label"] == {"name": its["label"][0], "values": classes}
    for epsilon in write.EPSILONS:
        campaign = Campaign.compile(write.draft(its, features, epsilon, None))
        assert table["documents"][f"local {epsilon}"] == [campaign.id, campaign.document.decode()]


@pytest.mark.parametrize("name", [table["name"] for table in TABLES])
def test_a_vector_is_what_the_aggregator_makes_of_its_counts(write, name):
    vector = next(one for one in VECTORS if one["table"] == name and one["setting"] == "5000 1" and "prior" in one)
    [table] = [one for one in TABLES if one["name"] == name]
    id_, text = table["documents"][vector["setting"]]
    campaign = Campaign.parse(text.encode(), id_)
    found = write.vector(campaign, tally_of(campaign, vector), parts(write, source(write, name)))
    assert close(found, {key: value for key, value in vector.items() if key not in ("table", "setting")})


@pytest.mark.long
def test_the_files_are_what_the_documented_command_makes(write, tmp_path, monkeypatch):
    monkeypatch.setattr(write, "HERE", tmp_path)
    write.main()
    assert (tmp_path / "tables.json").read_bytes() == (FOLDER / "tables.json").read_bytes()
    assert close(json.loads((tmp_path / "vectors.json").read_text(encoding="utf-8")), VECTORS)


def test_every_table_has_a_vector_of_a_seed_and_of_other_counts():
    kinds = Counter((one["table"], "seed" in one) for one in VECTORS)
    assert all(kinds[name, True] and kinds[name, False] > 3 for name in ("sleep", "keyboard", "tumour"))
