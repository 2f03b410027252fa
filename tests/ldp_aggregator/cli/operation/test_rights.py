"""Tokens, uploads and the log on the command line: what is done there is written down as what is done over HTTP."""

import getpass
import json
from datetime import datetime

import pytest


@pytest.fixture
def campaign_id(weather):
    return weather("--uploads-need-token", "relay")


def logged(run, *flags):
    return [(act["act"], act["outcome"]) for act in json.loads(run("status", "--log", "--json", *flags)[1])]


def tokens(run):
    return {token["name"]: token for token in json.loads(run("token", "list", "--json")[1])}


def test_every_command_that_changes_something_leaves_an_entry_with_its_user(run, campaign_id):
    commands = [
        (("token", "create", "--scope", "relay", "--name", "one", "--campaign", campaign_id), 0),
        (("token", "create", "--in-place-of", "one", "--name", "two", "--overlap", "7"), 0),
        (("token", "revoke", "two"), 0),
        (("campaign", "uploads", campaign_id, "device"), 0),
        (("campaign", "uploads", campaign_id, "anybody"), 0),
        (("train", campaign_id), 1),
        (("campaign", "delete", campaign_id), 1),
        (("campaign", "close", campaign_id), 0),
        (("campaign", "delete", campaign_id), 0),
    ]
    for command, code in commands:
        assert run(*command)[0] == code, command
    assert logged(run) == [
        ("create campaign", "done"),
        ("create token", "done"),
        ("rotate token", "done"),
        ("revoke token", "done"),
        ("let uploads need a token of scope device", "done"),
        ("let uploads need no token", "done"),
        ("publish model", "failed"),
        ("delete campaign", "failed"),
        ("close campaign", "done"),
        ("delete campaign", "done"),
    ]
    entries = json.loads(run("status", "--log", "--json")[1])
    assert {entry["actor"] for entry in entries} == {f"command line ({getpass.getuser()})"}
    assert [act for act, _ in logged(run, "--last", "1")] == ["delete campaign"]
    assert len(logged(run, "--campaign", campaign_id)) == 7
    assert "one" in entries[1]["detail"]
    assert campaign_id in run("status", "--log")[1]


def test_what_uploads_need_is_shown_with_the_campaign(run, refused, campaign_id):
    assert "uploads_need_token: relay" in run("campaign", "show", campaign_id)[1]
    assert run("campaign", "uploads", campaign_id, "anybody")[:2] == (0, "uploads need no token\n")
    assert json.loads(run("campaign", "list", "--json")[1])[0]["uploads_need_token"] is None
    assert run("campaign", "uploads", campaign_id, "admin")[0] == 2
    assert "no campaign has the id" in refused("campaign", "uploads", "A" * 43, "relay")


def test_a_token_expires_and_is_for_its_campaigns_as_is_the_one_that_takes_its_place(run, refused, campaign_id):
    create = ("token", "create", "--scope", "relay")
    assert run(*create, "--name", "one", "--expires-in", "30", "--campaign", campaign_id)[0] == 0
    one = tokens(run)["one"]
    created, expires = (datetime.fromisoformat(one[moment].replace("Z", "+00:00")) for moment in ("created", "expires"))
    assert ((expires - created).days, one["campaigns"]) == (30, [campaign_id])
    assert campaign_id in run("token", "list")[1]
    assert "no campaign has the id" in refused(*create, "--campaign", "A" * 43)
    for wrong in ("0", "-1", "soon", "nan", "1e400"):
        assert run(*create, f"--expires-in={wrong}")[0] == 2
    text = run("token", "create", "--in-place-of", "one", "--name", "two", "--overlap", "0.5")[1].strip()
    states = tokens(run)
    assert (len(text) >= 43, states["one"]["revoked"]) == (True, None)
    assert states["one"]["expires"] < one["expires"]
    assert states["two"]["campaigns"] == [campaign_id]
    assert run("token", "revoke", "one")[0] == 0, "the overlap can be ended"
