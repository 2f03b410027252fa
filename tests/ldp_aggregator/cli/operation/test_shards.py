"""``ldp-aggregator shards`` and ``capacity``: a store that grows into another database, and what reports cost."""

from __future__ import annotations

import asyncio
import json

import pytest
from postgres import databases, postgres  # noqa: F401 - a fixture


@pytest.fixture
def addresses(postgres):  # noqa: F811
    return asyncio.run(databases(postgres.address, 2))


def test_a_store_grows_into_another_database_and_slots_are_moved_there(run, addresses, monkeypatch):
    monkeypatch.setenv("LDP_AGGREGATOR_DATABASE", addresses[0])
    assert run("token", "create", "--scope", "admin")[0] == 0
    code, _, err = run("shards", "list")
    assert (code, "one database" in err) == (1, True)
    code, out, err = run("shards", "add", addresses[1])
    assert (code, err) == (0, "")
    assert "database 1 of the store" in out
    code, _, err = run("fsck")
    assert (code, "name all of them" in err) == (1, True)
    monkeypatch.setenv("LDP_AGGREGATOR_DATABASE", "\n".join(addresses))
    code, out, err = run("shards", "move", "0-2,255", "1")
    assert (code, err) == (0, "")
    assert out.count("is in database 1") == 4
    shown = json.loads(run("shards", "list", "--json")[1])
    assert [one["number"] for one in shown["databases"]] == [0, 1]
    assert shown["databases"][1]["slots"] == [0, 1, 2, 255]
    assert shown["moving"] == []
    assert "0-2,255" in run("shards", "list")[1]
    code, _, err = run("shards", "move", "3", "7")
    assert (code, "no database 7" in err) == (1, True)
    assert run("fsck")[0] == 0


@pytest.mark.parametrize("slots", ["256", "9-3", "a", "", "1,-2"])
def test_what_is_no_slot_is_refused(run, slots):
    code, _, err = run("shards", "move", slots, "1")
    assert code == 2
    assert "no slot from 0 to 255" in err


def test_a_folder_has_no_databases(run, tmp_path):
    code, _, err = run("shards", "list", "--data", str(tmp_path))
    assert (code, "--database" in err) == (1, True)


def test_what_reports_cost_is_measured_and_nothing_is_left(run, tmp_path):
    code, out, err = run("capacity", "--reports", "2000", "--json", "--data", str(tmp_path))
    assert (code, err) == (0, "")
    costs = json.loads(out)["costs"]
    assert [cost["reports"] for cost in costs] == [2000, 20]
    assert all(cost["per_second"] > 0 and cost["bytes_kept"] >= 0 for cost in costs)
    assert list(tmp_path.iterdir()) == []


def test_capacity_is_measured_in_an_empty_database_and_leaves_it_empty(run, addresses, monkeypatch):
    monkeypatch.setenv("LDP_AGGREGATOR_DATABASE", " ".join(addresses))
    assert "PostgreSQL" in run("capacity", "--reports", "300")[1]
    assert run("campaign", "list", "--json")[1].strip() in ("[]", '{"campaigns": []}')
