"""The command line, run as a user runs it."""

import csv
import io
import json
import re
import sqlite3
import subprocess
import sys

import pytest
from answering import answer

from protocols import Campaign
from protocols.model import Model

DRAFT = {
    "version": 1,
    "title": "Will a customer miss a payment?",
    "label": {"name": "missed_payment", "classes": ["yes", "no"]},
    "features": [{"name": "age", "kind": "categorical", "values": ["young", "medium", "old"]}],
    "privacy": {"epsilon": 1.0},
}


@pytest.fixture(autouse=True)
def no_settings(monkeypatch, tmp_path):
    """No setting from outside, and the data folder in the test's own."""
    monkeypatch.setenv("LDP_AGGREGATOR_DATA", str(tmp_path / "data"))


@pytest.fixture
def draft(tmp_path):
    path = tmp_path / "draft.json"
    path.write_text(json.dumps(DRAFT))
    return path


@pytest.fixture
def campaign_id(run, draft):
    code, out, _ = run("campaign", "create", draft)
    assert code == 0
    return out.strip()


def test_create_prints_the_id_and_only_the_id(run, draft):
    for _ in range(2):
        assert run("campaign", "create", draft) == (0, Campaign.compile(DRAFT).id + "\n", "")


def test_a_toml_draft_is_read_by_its_name(run, tmp_path):
    path = tmp_path / "draft.toml"
    path.write_text(
        'version = 1\ntitle = "Will a customer miss a payment?"\n'
        'label = {name = "missed_payment", classes = ["yes", "no"]}\nprivacy = {epsilon = 1.0}\n'
        '[[features]]\nname = "age"\nkind = "categorical"\nvalues = ["young", "medium", "old"]\n'
    )
    assert run("campaign", "create", path)[1].strip() == Campaign.compile(DRAFT).id


def test_a_bad_or_missing_draft_fails_in_one_line_that_names_what(refused, tmp_path):
    path = tmp_path / "draft.json"
    path.write_text(json.dumps(DRAFT | {"privacy": {"epsilon": -1}}))
    assert refused("campaign", "create", path).startswith("ldp-aggregator: privacy.epsilon: ")
    assert "none.json cannot be read" in refused("campaign", "create", tmp_path / "none.json")


def test_list_and_show_tell_the_state(run, campaign_id):
    assert campaign_id in run("campaign", "list")[1]
    [listed] = json.loads(run("campaign", "list", "--json")[1])
    assert (listed["id"], listed["status"], listed["reports"]) == (campaign_id, "open", 0)
    shown = run("campaign", "show", campaign_id)[1]
    assert "epsilon: 1" in shown
    assert "age" in shown
    assert json.loads(run("campaign", "show", campaign_id, "--json")[1])["questions"] == 2
    document = run("campaign", "show", campaign_id, "--document")[1]
    assert document.rstrip("\n").encode() == Campaign.compile(DRAFT).document


def test_close_says_how_many_reports_there_are(run, campaign_id):
    assert run("campaign", "close", campaign_id)[:2] == (0, "closed with 0 reports\n")
    assert json.loads(run("campaign", "list", "--json")[1])[0]["status"] == "closed"


def test_an_unknown_campaign_fails_in_one_line(refused, campaign_id):
    for command in (["campaign", "show"], ["campaign", "close"], ["estimates"], ["train"]):
        assert refused(*command, "A" * 43) == (
            f"ldp-aggregator: no campaign has the id {'A' * 43}; "
            "'ldp-aggregator campaign list' shows the ids of this store\n"
        )


def test_a_missing_store_is_not_made_by_reading(refused, tmp_path):
    assert "there is no store in" in refused("campaign", "list")
    assert not (tmp_path / "data").exists()


@pytest.fixture
def some_reports(campaign_id, tmp_path):
    """300 people answered."""
    answer(tmp_path / "data", campaign_id, [({"age": "old"}, "no")] * 300, seed=300)
    return campaign_id


def test_estimates_come_as_text_json_and_csv(run, some_reports):
    assert "old" in run("estimates", some_reports)[1]
    document = json.loads(run("estimates", some_reports, "--json")[1])
    assert sum(question["n"] for question in document["questions"]) == 300
    rows = list(csv.DictReader(io.StringIO(run("estimates", some_reports, "--csv", "--post", "none")[1])))
    assert {row["value"] for row in rows if row["feature"] == "age"} == {"young", "medium", "old", "missing", ""}
    assert run("estimates", some_reports, "--csv", "--json")[0] == 2


def test_what_liars_can_have_moved_is_printed_with_estimates_and_models(run, campaign_id, some_reports):
    shown = run("estimates", some_reports)[1]
    told = json.loads(run("estimates", some_reports, "--json")[1])
    assert f"{told['questions'][1]['cells'][0]['per_liar']:.3g}" in shown
    assert shown.splitlines()[-1].split()[-1] == f"{told['class_prior'][1]['per_liar']:.3g}"
    model = run("train", some_reports, "--anyway")[1]
    assert "If 3 devices, one in a hundred, had lied" in model
    assert re.search(r"^shares of the classes +at most ", model, re.M)
    assert re.search(r"^age +at least ", model, re.M)


def test_what_is_published_is_told_beside_the_local_loss_everywhere(run, some_reports, tmp_path):
    document = tmp_path / "document.json"
    document.write_text(run("campaign", "show", some_reports, "--document")[1].rstrip("\n"), encoding="utf-8")
    told = {
        command: json.loads(run(*command.split(), some_reports, "--json")[1])["published"]
        for command in ("estimates", "campaign show")
    }
    assert told["estimates"] == told["campaign show"]
    assert told["estimates"]["reports"] == 300
    assert 0 < told["estimates"]["epsilon"] < DRAFT["privacy"]["epsilon"]
    crowds = json.loads(run("campaign", "verify", document, "--json")[1])["published"]
    assert [crowd["reports"] for crowd in crowds] == [1000, 10_000, 100_000, 1_000_000]
    assert sorted((crowd["epsilon"] for crowd in crowds), reverse=True) == [crowd["epsilon"] for crowd in crowds]
    relayed = json.loads(run("campaign", "verify", document, "--relay-batch", "10000", "--json")[1])["relayed"]
    assert (relayed["epsilon"], relayed["reports"]) == (crowds[1]["epsilon"], 10_000)
    assert "does not collude" in run("campaign", "verify", document, "--relay-batch", "10000")[1]
    assert run("campaign", "verify", document, "--relay-batch", "0")[0] != 0
    model = tmp_path / "model.json"
    shown = [
        run("estimates", some_reports)[1],
        run("train", some_reports, "--anyway", "--output", model)[1],
        run("campaign", "show", some_reports)[1],
    ]
    for text in shown:
        assert f"epsilon = {told['estimates']['epsilon']:.4g}, delta = 1e-09" in text
        assert "to whoever has its report: epsilon = " in text
        assert all(condition in text for condition in told["estimates"]["conditions"])
    assert all(one in run("campaign", "verify", document)[1] for one in ("1,000,000", *told["estimates"]["conditions"]))
    training = json.loads(model.read_text(encoding="utf-8"))["training"]
    assert training["published"] == told["estimates"]
    assert training["guarantee"]["epsilon"] == DRAFT["privacy"]["epsilon"]


def test_moments_are_printed_with_what_liars_can_have_moved_or_unbounded(run, tmp_path):
    path = tmp_path / "draft.json"
    features = [{"name": "age", "kind": "continuous", "low": 0, "high": 100}]
    path.write_text(json.dumps({**DRAFT, "features": features}))
    campaign_id = run("campaign", "create", path)[1].strip()
    shown = run("estimates", campaign_id)[1]
    assert shown.count("unbounded") == 11
    assert not {"None", "NaN"} & set(shown.split())


def test_train_publishes_and_writes_the_model(run, some_reports, tmp_path):
    path = tmp_path / "model.json"
    code, out, _ = run("train", some_reports, "--anyway", "--output", path)
    assert (code, out.splitlines()[0]) == (0, "model version 1 from 300 reports is published")
    assert "is right for 0.999 of the people" in out
    assert "with these reports the model is not known to be better than always saying the most frequent class" in out
    assert Model.from_json(path.read_bytes()).classes == ("yes", "no")
    assert run("train", some_reports, "--anyway", "--post", "floor")[1].startswith("model version 2")
    assert json.loads(run("campaign", "list", "--json")[1])[0]["model_version"] == 2


def test_a_model_of_nothing_or_not_above_the_prior_is_not_published(run, campaign_id, tmp_path):
    assert run("train", campaign_id) == (1, "", "ldp-aggregator: no report has been counted yet\n")
    answer(tmp_path / "data", campaign_id, [({"age": "old"}, "no")] * 300, seed=300)
    code, out, err = run("train", campaign_id)
    assert (code, out) == (1, "")
    assert "300 reports do not show that the model is better than always saying the most frequent class" in err
    assert err.endswith("Nothing is published; --anyway publishes it\n")
    assert json.loads(run("campaign", "list", "--json")[1])[0]["model_version"] is None


def test_a_token_is_printed_once_and_only_its_hash_is_kept(run, refused, tmp_path):
    code, out, _ = run("token", "create", "--scope", "collector", "--name", "dashboard")
    text = out.strip()
    assert (code, len(text) >= 43) == (0, True)
    kept = b"".join(path.read_bytes() for path in (tmp_path / "data").iterdir())
    assert b"dashboard" in kept
    assert text.encode() not in kept
    assert "dashboard" in refused("token", "create", "--scope", "admin", "--name", "dashboard")
    assert run("token", "create", "--scope", "everything")[0] == 2


def test_tokens_are_listed_rotated_and_revoked(run, refused):
    run("token", "create", "--scope", "relay", "--name", "one")
    code, text, _ = run("token", "create", "--in-place-of", "one", "--name", "two")
    assert (code, len(text.strip()) >= 43) == (0, True)
    states = {token["name"]: token for token in json.loads(run("token", "list", "--json")[1])}
    assert (states["one"]["revoked"] is None, states["two"]["revoked"]) == (False, None)
    assert states["two"]["scope"] == "relay"
    assert run("token", "revoke", "two")[:2] == (0, "token 'two' is revoked\n")
    for command in (["revoke", "two"], ["create", "--in-place-of", "one"], ["revoke", "nobody's"]):
        assert "no token in use has the name" in refused("token", *command)
    assert "two" in run("token", "list")[1]


def test_fsck_says_what_is_sound_and_what_is_not(run, some_reports, tmp_path):
    code, out, _ = run("fsck")
    assert (code, out.startswith("1 campaigns are sound")) == (0, True)
    with sqlite3.connect(tmp_path / "data" / "aggregator.sqlite3") as db:
        db.execute("UPDATE recent_ids SET records = substr(records, 25)")
    db.close()
    code, out, _ = run("fsck")
    assert (code, out) == (1, f"{some_reports}: 300 reports are counted, but 299 ids are stored\n")


def test_backup_refuses_to_copy_a_folder_that_is_not_the_store(refused, some_reports, tmp_path, monkeypatch):
    """An old folder may lie where the server's store is a database: its copy would be no backup."""
    monkeypatch.setenv("LDP_AGGREGATOR_DATABASE", "postgresql://ldp:geheim@database/ldp")
    err = refused("backup", tmp_path / "copy")
    assert ("PostgreSQL" in err, "pg_dump" in err, "geheim" in err) == (True, True, False)
    assert not (tmp_path / "copy").exists()


def test_backup_and_merge_make_new_folders(run, some_reports, tmp_path):
    assert run("backup", tmp_path / "copy")[0] == 0
    assert run("fsck", "--data", tmp_path / "copy")[0] == 0
    code, out, _ = run("merge", tmp_path / "data", tmp_path / "copy", "-o", tmp_path / "both")
    assert (code, "600 reports or shares, 300 of them counted twice: both stores had them" in out) == (0, True)
    assert run("fsck", "--data", tmp_path / "both")[0] == 0


def test_a_password_on_the_command_line_is_refused(run):
    code, _, err = run("campaign", "list", "--database", "postgresql://someone:geheim@localhost/ldp")
    assert (code, "no password here" in err, "geheim" in err) == (2, True, False)


def test_an_unknown_setting_is_refused_before_anything_happens(run, draft, monkeypatch, tmp_path):
    monkeypatch.setenv("LDP_AGGREGATOR_LIMITS__BODYBYTES", "5")
    code, _, err = run("campaign", "create", draft)
    assert code == 2
    assert "LDP_AGGREGATOR_LIMITS__BODYBYTES is unknown" in err
    assert not (tmp_path / "data").exists()


def test_without_the_aggregators_libraries_one_line_says_what_to_install(tmp_path):
    """A meta path hook stands in for an installation without the extra."""
    script = (
        "import sys\n"
        "absent = {'numpy', 'pydantic', 'aiohttp', 'pandas', 'sklearn', 'pydantic_settings'}\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in absent:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "from ldp_aggregator.__main__ import main\n"
        "sys.exit(main(['campaign', 'list']))\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert "pip install 'ldp-bayes[aggregator]'" in result.stderr


def test_rounds_of_a_study_train_one_model_that_is_published_for_each(run, tmp_path):
    ids = []
    for weight in (1, 3):
        path = tmp_path / f"round-{weight}.json"
        feature = {**DRAFT["features"][0], "weight": weight}
        path.write_text(json.dumps({**DRAFT, "features": [feature], "study": "credit"}))
        ids.append(run("campaign", "create", path)[1].strip())
    code, _, err = run("train", *ids)
    assert (code, err) == (1, "ldp-aggregator: no report has been counted yet\n")
    answer(tmp_path / "data", ids[0], [({"age": "old"}, "no")] * 20)
    code, out, _ = run("train", *ids, "--anyway", "--post", "floor", "--output", tmp_path / "model.json")
    assert (code, out.splitlines()[0]) == (0, "model version 1 and 1 from 20 reports is published")
    training = json.loads((tmp_path / "model.json").read_text())["training"]
    assert (training["campaigns"], training["post"]) == (ids, "floor")
