"""The command line, run as a user runs it."""

import csv
import io
import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib import import_module

import drafts
import pytest
from answering import answer

import ldp_protocols
from ldp_aggregator.cli.common import ABOUT
from ldp_aggregator.cli.program import MODULES, make_parser
from ldp_protocols import Campaign
from ldp_protocols.document.model import Model
from ldp_simulations.__main__ import COMMANDS as EXPERIMENTS

DONE = 0


NEVER_FOR_HELP = ("pandas", "scipy", "sklearn", "aiohttp")

LABEL = {"name": "missed_payment", "classes": ["yes", "no"]}
DRAFT = drafts.draft(drafts.text("age", "young", "medium", "old", missing=True), title="Missed payments", label=LABEL)


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


def test_create_prints_the_id_and_only_the_id_and_names_what_is_wrong_with_a_draft(run, refused, draft, tmp_path):
    for _ in range(2):
        assert run("campaign", "create", draft) == (0, Campaign.compile(DRAFT).id + "\n", "")
    path = tmp_path / "draft.toml"
    path.write_text(
        'version = 1\ntitle = "Missed payments"\n'
        'label = {name = "missed_payment", classes = ["yes", "no"]}\nprivacy = {epsilon = 1.0}\n'
        '[[features]]\nname = "age"\nkind = "categorical"\nvalues = ["young", "medium", "old"]\n'
    )
    assert run("campaign", "create", path)[1].strip() == Campaign.compile(DRAFT).id
    draft.write_text(json.dumps(DRAFT | {"privacy": {"epsilon": -1}}))
    assert refused("campaign", "create", draft).startswith("ldp-aggregator: privacy.epsilon: ")


def test_list_and_show_tell_the_state_and_no_command_takes_an_unknown_campaign(run, refused, campaign_id):
    assert campaign_id in run("campaign", "list")[1]
    [listed] = json.loads(run("campaign", "list", "--json")[1])
    assert (listed["id"], listed["status"], listed["reports"]) == (campaign_id, "open", 0)
    shown = run("campaign", "show", campaign_id)[1]
    assert "epsilon: 1" in shown
    assert "age" in shown
    assert json.loads(run("campaign", "show", campaign_id, "--json")[1])["questions"] == 2
    document = run("campaign", "show", campaign_id, "--document")[1]
    assert document.rstrip("\n").encode() == Campaign.compile(DRAFT).document
    unknown = f"no campaign has the id {'A' * 43}; 'ldp-aggregator campaign list' shows the ids of this store"
    for command in (["campaign", "show"], ["campaign", "close"], ["estimates"], ["train"]):
        assert refused(*command, "A" * 43) == f"ldp-aggregator: {unknown}\n"


@pytest.fixture
def some_reports(campaign_id, data):
    """300 people answered."""
    answer(data, campaign_id, [({"age": "old"}, "no")] * 300, seed=300)
    return campaign_id


def test_estimates_come_as_text_json_and_csv(run, some_reports):
    assert "old" in run("estimates", some_reports)[1]
    document = json.loads(run("estimates", some_reports, "--json")[1])
    assert sum(question["n"] for question in document["questions"]) == 300
    rows = list(csv.DictReader(io.StringIO(run("estimates", some_reports, "--csv", "--post", "none")[1])))
    assert {row["value"] for row in rows if row["feature"] == "age"} == {"young", "medium", "old", "missing", ""}
    assert run("estimates", some_reports, "--csv", "--json")[0] == 2


def test_so_many_liars_move_a_ratio_by_more_than_as_many_times_what_one_moves(run, some_reports):
    one, many = (json.loads(run("estimates", some_reports, "--json", "--liars", of)[1])["lies"] for of in ("1", "20"))
    assert (one["liars"], many["liars"]) == (1, 20)
    assert many["classes"] == pytest.approx(min(1.0, 20 * one["classes"]))
    assert one["features"].keys() == many["features"].keys()
    assert all(
        many["features"][name] > one["features"][name] for name in one["features"] if one["features"][name] < 0.5
    )
    shown = run("estimates", some_reports, "--liars", "20")[1]
    assert "If 20 of the devices had lied, at most" in shown
    assert "lies" not in json.loads(run("estimates", some_reports, "--json")[1])
    assert run("estimates", some_reports, "--liars", "0")[0] == 2


def test_what_liars_can_have_moved_is_printed_with_estimates_and_models(run, draft, some_reports):
    shown = run("estimates", some_reports)[1]
    told = json.loads(run("estimates", some_reports, "--json")[1])
    assert f"{told['questions'][1]['cells'][0]['per_liar']:.3g}" in shown
    assert shown.splitlines()[-1].split()[-1] == f"{told['class_prior'][1]['per_liar']:.3g}"
    model = run("train", some_reports, "--anyway")[1]
    assert "If 3 liars had taken part, one in a hundred" in model
    assert re.search(r"^shares of the classes +at most ", model, re.M)
    assert re.search(r"^age +at least ", model, re.M)
    features = [{"name": "age", "kind": "continuous", "low": 0, "high": 100}]
    draft.write_text(json.dumps({**DRAFT, "features": features}))
    shown = run("estimates", run("campaign", "create", draft)[1].strip())[1]
    assert shown.count("unbounded") == 11, "no moment has a report"
    assert not {"None", "NaN"} & set(shown.split())


def test_what_is_published_is_told_beside_the_local_loss_everywhere(run, some_reports, tmp_path):
    document, model = tmp_path / "document.json", tmp_path / "model.json"
    document.write_text(run("campaign", "show", some_reports, "--document")[1].rstrip("\n"), encoding="utf-8")
    told, shown = (
        json.loads(run(*command, some_reports, "--json")[1])["published"]
        for command in (["estimates"], ["campaign", "show"])
    )
    assert told == shown
    assert told["reports"] == 300
    assert 0 < told["epsilon"] < DRAFT["privacy"]["epsilon"]
    crowds = json.loads(run("campaign", "verify", document, "--json")[1])["published"]
    assert [crowd["reports"] for crowd in crowds] == [1000, 10_000, 100_000, 1_000_000]
    assert sorted((crowd["epsilon"] for crowd in crowds), reverse=True) == [crowd["epsilon"] for crowd in crowds]
    relayed = json.loads(run("campaign", "verify", document, "--relay-batch", "10000", "--json")[1])["relayed"]
    assert (relayed["epsilon"], relayed["reports"]) == (crowds[1]["epsilon"], 10_000)
    assert "does not collude" in run("campaign", "verify", document, "--relay-batch", "10000")[1]
    assert run("campaign", "verify", document, "--relay-batch", "0")[0] != 0
    for command in (["estimates"], ["train", "--anyway", "--output", model], ["campaign", "show"]):
        text = run(*command, some_reports)[1]
        assert f"epsilon = {told['epsilon']:.4g}, delta = 1e-09" in text
        assert "Who intercepts an answer is at most " in text
        if command != ["estimates"]:
            assert not any(condition in text for condition in told["conditions"])
            text = run(*command, some_reports[:6], "--explain")[1]
        assert all(condition in text for condition in told["conditions"])
    assert all(one in run("campaign", "verify", document)[1] for one in ("1,000,000", *told["conditions"]))
    training = json.loads(model.read_text(encoding="utf-8"))["training"]
    assert (training["published"], training["guarantee"]["epsilon"]) == (told, DRAFT["privacy"]["epsilon"])


def test_train_publishes_and_writes_a_model_above_the_prior_or_where_it_is_told_to(run, campaign_id, data, tmp_path):
    path = tmp_path / "model.json"
    assert run("train", campaign_id) == (1, "", "ldp-aggregator: no report has been counted yet\n")
    answer(data, campaign_id, [({"age": "old"}, "no")] * 300, seed=300)
    code, out, err = run("train", campaign_id)
    assert (code, out) == (1, "")
    assert "with 300 answers the model cannot be told from always guessing the most frequent class, which is" in err
    assert err.endswith("Nothing is published; --anyway publishes it\n")
    assert json.loads(run("campaign", "list", "--json")[1])[0]["model_version"] is None
    code, out, _ = run("train", campaign_id, "--anyway", "--output", path)
    assert (code, out.splitlines()[0]) == (0, "Model version 1 is published from 300 reports.")
    assert "Always guessing the most frequent class is right for 99.9 %." in out
    assert "Not measured. It may be no better than guessing: its features are not known to tell anything." in out
    assert Model.from_json(path.read_bytes()).classes == ("yes", "no")
    assert run("train", campaign_id, "--anyway", "--post", "floor")[1].startswith("Model version 2 is published")
    assert json.loads(run("campaign", "list", "--json")[1])[0]["model_version"] == 2


def test_a_token_is_printed_once_and_listed_rotated_and_revoked(run, refused, data):
    code, out, _ = run("token", "create", "--scope", "relay", "--name", "one")
    token = out.strip()
    assert (code, len(token) >= 43) == (0, True)
    kept = b"".join(path.read_bytes() for path in data.iterdir())
    assert b"one" in kept
    assert token.encode() not in kept, "only its hash is kept"
    assert "'one'" in refused("token", "create", "--scope", "admin", "--name", "one")
    assert run("token", "create", "--scope", "everything")[0] == 2
    code, token, _ = run("token", "create", "--in-place-of", "one", "--name", "two")
    assert (code, len(token.strip()) >= 43) == (0, True)
    states = {token["name"]: token for token in json.loads(run("token", "list", "--json")[1])}
    assert (states["one"]["revoked"] is None, states["two"]["revoked"]) == (False, None)
    assert states["two"]["scope"] == "relay"
    assert run("token", "revoke", "two")[:2] == (0, "token 'two' is revoked\n")
    for command in (["revoke", "two"], ["create", "--in-place-of", "one"], ["revoke", "nobody's"]):
        assert "no token in use has the name" in refused("token", *command)
    assert "two" in run("token", "list")[1]


def test_fsck_says_what_is_sound_and_what_is_not(run, some_reports, data):
    code, out, _ = run("fsck")
    assert (code, out.startswith("1 campaign checked: nothing is wrong.")) == (0, True)
    with closing(sqlite3.connect(data / "aggregator.sqlite3")) as db, db:
        db.execute("UPDATE recent_ids SET records = substr(records, 25)")
    code, out, _ = run("fsck")
    assert (code, out.count("\n")) == (1, 2)
    assert f"{some_reports}: the ids of commit " in out
    assert f"{some_reports}: 300 reports are counted, but 299 ids are stored\n" in out


def test_an_unknown_setting_a_password_and_a_missing_store_are_refused_before_anything_happens(
    run, refused, draft, monkeypatch, data
):
    monkeypatch.setenv("LDP_AGGREGATOR_LIMITS__BODYBYTES", "5")
    code, _, err = run("campaign", "create", draft)
    assert (code, "LDP_AGGREGATOR_LIMITS__BODYBYTES is unknown" in err) == (2, True)
    monkeypatch.delenv("LDP_AGGREGATOR_LIMITS__BODYBYTES")
    code, _, err = run("campaign", "list", "--database", "postgresql://someone:geheim@localhost/ldp")
    assert (code, "no password here" in err, "geheim" in err) == (2, True, False)
    assert "there is no store in" in refused("campaign", "list"), "reading makes none"
    assert not data.exists()


@pytest.mark.parametrize("named", [["--data"], ["--data", "--config"]])
def test_the_options_of_the_store_are_refused_where_none_is_opened(refused, tmp_path, named):
    given = [word for flag in named for word in (flag, tmp_path / "x")]
    for line in ([*given, "campaign", "verify", "d.json"], ["campaign", "verify", "d.json", *given]):
        assert f"no store is opened; leave out {' and '.join(named)}" in refused(*line, expected=2)


def test_only_a_missing_library_of_others_is_what_a_command_needs(monkeypatch):
    def missing(name):
        def fails(_):
            raise ModuleNotFoundError(name=name)

        return fails

    monkeypatch.setattr("ldp_aggregator.cli.program.import_module", missing("scipy.stats"))
    assert "needs scipy.stats: pip install 'ldp-bayes[aggregator]'" in " ".join(make_parser().format_help().split())
    for name in ("ldp_aggregator.nothing", "ldp_protocols"):
        monkeypatch.setattr("ldp_aggregator.cli.program.import_module", missing(name))
        with pytest.raises(ModuleNotFoundError):
            make_parser()


def test_rounds_of_a_study_train_one_model_that_is_published_for_each(run, data, tmp_path):
    ids = []
    for weight in (1, 3):
        path = tmp_path / f"round-{weight}.json"
        feature = {**DRAFT["features"][0], "weight": weight}
        path.write_text(json.dumps({**DRAFT, "features": [feature], "study": "credit"}))
        ids.append(run("campaign", "create", path)[1].strip())
    code, _, err = run("train", *ids)
    assert (code, err) == (1, "ldp-aggregator: no report has been counted yet\n")
    answer(data, ids[0], [({"age": "old"}, "no")] * 20)
    code, out, _ = run("train", *ids, "--anyway", "--post", "floor", "--output", tmp_path / "model.json")
    assert (code, out.splitlines()[0]) == (0, "Model versions 1 and 1 are published from 20 reports.")
    training = json.loads((tmp_path / "model.json").read_text())["training"]
    assert (training["campaigns"], training["post"]) == (ids, "floor")


@pytest.mark.parametrize("program", ["ldp_aggregator", "ldp_client", "ldp_simulations"])
def test_every_program_says_its_version_which_is_that_of_every_package(program):
    answered = subprocess.run([sys.executable, "-m", program, "--version"], check=True, capture_output=True, text=True)
    assert f" {ldp_protocols.__version__} (Python " in answered.stdout
    assert import_module(program).__version__ == ldp_protocols.__version__


@pytest.mark.parametrize(
    ("main", "commands"),
    [("ldp_aggregator.cli.program import run", ABOUT), ("ldp_simulations.__main__ import main as run", EXPERIMENTS)],
)
def test_help_lists_every_command_and_imports_no_library_that_trains_or_serves(main, commands):
    program = (
        f"import sys\nfrom {main}\n"
        "try: run(['--help'])\nexcept SystemExit as ended: code = ended.code\n"
        f"sys.exit(code or sum(name in sys.modules for name in {NEVER_FOR_HELP!r}))"
    )
    answered = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert answered.returncode == DONE
    assert [name for name in commands if not re.search(rf"^ +{name}\s", answered.stdout, re.MULTILINE)] == []


def test_help_says_of_a_command_what_its_own_help_says():
    assert list(ABOUT) == [name for names in MODULES.values() for name in names]
    assert make_parser().format_help() == make_parser(listed=True).format_help()
