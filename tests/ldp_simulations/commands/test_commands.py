"""``accuracy``, ``plan`` and ``draft`` from a shell's point of view, and what every command says of a mistake."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from buyers import DRAFT, run, write_draft, write_table
from crowds import crowd_draft
from drafts import draft, number, text
from evaluated import evaluation

from ldp_protocols import Campaign
from ldp_simulations.commands.tables import TOKEN_VARIABLE
from ldp_simulations.studies.series import BY_LOT, CHANGES, FILTERED, MEMOISED, SMOOTHED, SPLIT, SPLIT_SMOOTHED
from ldp_simulations.tables import draft_of

FAILED = 1
WRONG_USAGE = 2


FOUND_LATER = ("no column", "cannot be", "not JSON", "not declared", "not a journal", "no number", "1e-5", "not reach")
"""What is wrong with a table, a file or a server; everything else is the command line."""
PLAN = ["plan", "--schema", "SCHEMA"]
EVALUATING = ["accuracy", "--data", "TABLE", "--label", "sold", "--devices", "100", "--evaluating"]
POPULATION = ["population", "--data", "TABLE", "--schema", "SCHEMA"]
NOBODY = "http://127.0.0.1:9"
"""The discard port: nothing listens there."""


@pytest.fixture
def table(tmp_path):
    return write_table(tmp_path / "people.csv")


@pytest.fixture
def schema(tmp_path):
    return write_draft(tmp_path / "draft.json")


@pytest.fixture
def plan(capsys, schema, monkeypatch):
    """What ``plan`` ends with and says of the draft, after few simulations."""
    monkeypatch.setattr("ldp_simulations.commands.plan.REPEATS", 2)
    return lambda *flags: run(capsys, "plan", *(() if "--schema" in flags else ("--schema", schema)), *flags)


@pytest.fixture
def numbers(tmp_path, monkeypatch):
    """People of whom the upper half is tall, a draft that asks their height in 40 bins; and more simulations."""
    monkeypatch.setattr("ldp_simulations.commands.plan.REPEATS", 4)
    monkeypatch.setattr("ldp_simulations.studies.pilots.BINS", (2, 16))
    heights = np.random.default_rng(1).uniform(0, 1, 400)
    table = pd.DataFrame({"height": heights, "tall": np.where(heights > 0.5, "yes", "no")})
    table.to_csv(tmp_path / "heights.csv", index=False)
    label = {"name": "tall", "classes": ["yes", "no"]}
    return tmp_path / "heights.csv", draft(number("height", high=1, bins=40), label=label, privacy={"epsilon": 1.0})


@pytest.fixture
def rare(tmp_path):
    """Flags for a table on which a feature that stands there thrice makes Naive Bayes too sure of the rare class."""
    rng = np.random.default_rng(2)
    labels = np.where(rng.random(1_000) < 0.17, "tall", "short")
    seen = np.where((labels == "tall") == (rng.random(1_000) < 0.75), "high", "low")
    names = ["a", "b", "c"]
    pd.DataFrame(dict.fromkeys(names, seen) | {"size": labels}).to_csv(tmp_path / "sizes.csv", index=False)
    asked = [text(name, "high", "low", missing=False) for name in names]
    label = {"name": "size", "classes": ["tall", "short"]}
    schema = write_draft(tmp_path / "sizes.json", draft(*asked, label=label, privacy={"epsilon": 4.0}))
    return ["--schema", schema, "--pilot", tmp_path / "sizes.csv"]


def test_accuracy_has_every_combination_under_its_total_loss_asks_as_the_draft_says_and_gives_every_trial_as_json(
    table, schema, tmp_path, capsys
):
    flags = ["--data", table, "--mechanism", "de", "oue", "--epsilon", 1, 2, "--repeats", 3, "--workers", 1]
    code, out, _ = run(capsys, "accuracy", *flags, "--schema", schema)
    assert code == 0
    lines = [line.split() for line in out.splitlines() if line.startswith(("de ", "oue "))]
    assert [line[:3] for line in lines] == [["de", "1", "1"], ["de", "2", "2"], ["oue", "1", "1"], ["oue", "2", "2"]]
    assert "3 trials, 96 devices each, which answer one question" in out
    everything = write_draft(tmp_path / "all.json", {**DRAFT, "privacy": {"epsilon": 3.0, "answers": "all"}})
    flags = ["--data", table, "--schema", everything, "--repeats", 2, "--seed", 7, "--workers", 1]
    assert "which answer every question" in run(capsys, "accuracy", *flags)[1]
    code, out, _ = run(capsys, "accuracy", *flags, "--json")
    told = json.loads(out)
    assert (code, told["seeds"], [trial["seed"] for trial in told["trials"]]) == (0, [7, 8], [7, 8])
    assert told["summary"][0]["total_epsilon"] == 3.0


def test_a_plan_says_why_and_how_many_and_what_the_answers_of_an_evaluation_would_tell(schema, tmp_path, capsys):
    which = write_draft(tmp_path / "which.json", draft_of(evaluation()))
    for campaign, devices, said in (
        (schema, 30_000, r"^[\d,]+ devices at epsilon 3 for errors of 20% of an even share in the worst question\n"),
        (schema, 30_000, "\n30,000 devices, each with a total loss of at most 3, answer one question"),
        (schema, 30_000, r"\n\nto who sees only what is published: epsilon = [^\n]*\n$"),
        (schema, 30_000, r"(?s)size \(value\).*size \(square\).*sign by .*least noise; .*at half the epsilon"),
        (which, 20_000, r"(?s)whether the model is right.*accuracy +0\.00\d\d\n.*area under the ROC.*recall of b"),
    ):
        code, out, err = run(capsys, "plan", "--schema", campaign, "--devices", devices)
        assert (code, err) == (0, "")
        assert re.search(said, out), out


def test_a_plan_with_a_pilot_finds_the_devices_for_a_loss(table, plan):
    flags = ["--devices", 1_000, "--epsilon", 2, "--pilot", table, "--loss", 0.1]
    code, out, _ = plan(*flags, "--json")
    told = json.loads(out)
    assert (code, told["epsilon"], told["pilot"]["non_private"]) == (0, 2, 1.0)
    assert told["pilot"]["devices_for_loss"] <= 4_000
    assert all(one["standard_error_at_half_epsilon"] > one["standard_error"] for one in told["questions"])
    assert told["pilot"]["devices_for_ranking"] <= 4_000
    shown = plan(*flags)[1]
    assert re.search(r"^about [\d,]+ devices at epsilon 2 to lose at most 0.1 against no privacy\n", shown)
    assert re.search(
        r"(?s)to lose at most 0.1 against no privacy: about .* to rank \w+ by an area of 0.8: about ", shown
    )
    assert told["pilot"]["called"][-1] == 1.0
    assert re.search(r"\n  no bins +[01]\.\d+ \+- 0\.\d+  as the draft\n", shown)
    assert re.search(r"\n  16 bins +[01]\.\d+ \+- 0\.\d+  [+-]0\.\d+ \+- 0\.\d+ to the draft\n", shown)


def test_a_pilot_tells_what_other_numbers_of_bins_are_worth_and_what_the_draft_loses(numbers, plan, tmp_path):
    """Who is taller than half is asked in 40 bins; two are enough. The noise of 80 cells is seen from few devices."""
    people, draft = numbers
    schema = write_draft(tmp_path / "tall.json", draft)
    flags = ["--schema", schema, "--devices", 1_500, "--pilot", people, "--loss", 0.4]
    told = json.loads(plan(*flags, "--json")[1])
    bins = {one["bins"]: one for one in told["pilot"]["bins"]}
    assert list(bins) == [2, 16, 40, None]
    assert [one for one in bins.values() if one["drafted"]] == [bins[40]]
    assert bins[2]["accuracy"] > bins[40]["accuracy"] + 0.05
    (note,) = told["notes"]
    assert re.fullmatch(r"the draft loses 0\.\d+ \+- 0\.\d+ of accuracy against \w+ bins", note)
    assert "height: 32 bins lost 0.034" in plan(*flags[:4])[1]


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (
            ["--accuracy", 0.8],
            "an accuracy of 0.8 takes no campaign: always saying short, the most frequent class, has 0.8",
        ),
        (["--accuracy", 0.8, "--devices", 900], "an accuracy of 0.8 takes no campaign: always saying short"),
        (["--accuracy", "balanced=0.5"], "a balanced accuracy of 0.5 takes no campaign: always saying short"),
        (["--accuracy", "area=0.45"], "an area of 0.45 under the ROC curve of the rarest class takes no campaign"),
    ],
)
def test_a_wish_that_the_most_frequent_class_meets_is_refused(flags, problem, rare, plan):
    code, out, err = plan(*rare, *flags)
    assert (code, out, err.count("\n")) == (FAILED, "", 1)
    assert problem in err
    assert "Wish for more" in err


def test_naive_bayes_below_the_most_frequent_class_is_warned_of_and_can_be_wished_to_rank_and_to_tell(rare, plan):
    for measure in ("balanced", "area", "called"):
        code, out, _ = plan(*rare, "--accuracy", f"{measure}=0.6", "--json")
        told = json.loads(out)
        assert (code, told["solution"]["solved"]) == (0, "devices")
        assert (told["solution"]["wish"]["measure"], told["solution"]["wish"]["target"]) == (measure, 0.6)
        assert max(told["pilot"][measure]) >= 0.6
    assert re.fullmatch(
        r"without noise Naive Bayes is right for 0\.\d+ of the people held out, and always saying short for 0\.\d+: .*",
        told["notes"][0],
    )
    assert told["pilot"]["non_private"] < told["pilot"]["majority"]
    shown = plan(*rare, "--accuracy", "area=0.6")[1]
    assert re.match(r"[\d,]+ devices at epsilon 4 for an area of 0.6 under the ROC curve of the rarest class\n", shown)


def test_a_published_epsilon_gives_the_largest_local_one_or_the_fewest_devices_where_none_are_given(plan):
    wanted = ("--devices", 10_000, "--published-epsilon", 0.05)
    told = json.loads(plan(*wanted, "--json")[1])
    assert told["solution"]["solved"] == "epsilon"
    assert told["epsilon"] == told["solution"]["epsilon"]
    assert told["published"]["epsilon"] <= 0.05 < told["published"]["epsilon"] * 1.02
    code, shown, _ = plan(*wanted)
    assert code == 0
    for said in (
        f"epsilon {told['epsilon']:g} at most with 10,000 devices for a published epsilon",
        "to who sees only what is published",
        "published once",
    ):
        assert said in shown
    told = json.loads(plan("--published-epsilon", 0.02, "--json")[1])
    assert (told["solution"]["solved"], told["epsilon"]) == ("devices", 3.0)
    assert told["published"]["epsilon"] <= 0.02
    more = json.loads(plan("--published-epsilon", 0.02, "--colluding", 1000, "--json")[1])
    assert more["devices"] == pytest.approx(told["devices"] + 1000, rel=2e-3)


def test_an_accuracy_gives_devices_or_the_least_epsilon(plan, table):
    flags = ("--pilot", table, "--accuracy", 0.95, "--json")
    devices = json.loads(plan(*flags)[1])["solution"]
    assert (devices["solved"], devices["epsilon"]) == ("devices", 3.0)
    assert set(str(devices["devices"])[2:]) <= {"0"}, "to two digits, as what simulations say"
    epsilon = json.loads(plan(*flags, "--devices", 2000)[1])["solution"]
    assert epsilon["solved"] == "epsilon"
    assert 0 < epsilon["epsilon"] < 4


def test_evaluating_is_simulated_from_learning_to_publishing(table, schema, tmp_path, capsys):
    flags = ["--data", table, "--schema", schema, "--devices", 40_000, "--evaluating", 0.1]
    flags += ["--repeats", 3, "--workers", 1]
    journal = ("--journal", tmp_path / "journal")
    code, out, _ = run(capsys, "accuracy", *flags, *journal)
    assert code == 0
    assert "40,000 devices at a total epsilon of 3, 4,000 of them evaluate; 3 trials" in out
    assert "the threshold was moved in " in out
    assert "it buys the knowledge of" in out or "the round pays" in out
    assert run(capsys, "accuracy", *flags, *journal)[1] == out
    code, out, _ = run(capsys, "accuracy", *flags, "--epsilon", 1, "--json")
    document, summary = json.loads(out), json.loads(out)["summary"]
    assert (document["epsilon"], document["seeds"], summary["trials"], len(document["trials"])) == (1, [0, 1, 2], 3, 3)
    assert summary["majority"] < summary["published"] <= 1
    assert 0 < summary["told"] < 1.1


def test_a_drafted_campaign_compiles_and_its_notes_are_loud(table, tmp_path, capsys):
    code, out, err = run(capsys, "draft", "--data", table, "--label", "sold", "--epsilon", 0.5, "--bins", 3)
    assert code == 0
    assert Campaign.compile(out).privacy.epsilon == 0.5
    assert err.startswith("BEFORE ANYONE IS ASKED")
    assert "the bounds of size (0 to 60)" in err
    code, out, _ = run(capsys, "draft", "--data", table, "--label", "sold", "--output", tmp_path / "d.json", "--json")
    assert code == 0
    assert json.loads(out)["draft"] == json.loads((tmp_path / "d.json").read_text())
    assert json.loads(out)["left_out"] == []


def test_without_a_label_a_table_is_drafted_tried_and_planned_for_statistics(table, tmp_path, capsys):
    schema = tmp_path / "statistics.json"
    code, _, err = run(capsys, "draft", "--data", table, "--output", schema, "--bins", 4)
    drafted = json.loads(schema.read_text(encoding="utf-8"))
    campaign = Campaign.compile(drafted)
    assert (code, campaign.asks, "classes" in err) == (0, "statistics", False)
    write_draft(schema, drafted | {"pairs": [["colour", "sold"]]})
    flags = ["--data", table, "--schema", schema, "--repeats", 8, "--devices", 20_000, "--workers", 1, "--json"]
    code, out, _ = run(capsys, "accuracy", *flags, "--epsilon", 1, 4)
    rows = json.loads(out)["summary"]
    assert [row["total_epsilon"] for row in rows] == [1, 4]
    # Of 8 trials with some 12 cells each the root mean square has a standard error of about a tenth.
    assert all(0.6 < row["error"] / row["expected"] < 1.5 and row["covered"] > 0.85 for row in rows)
    code, out, _ = run(capsys, "accuracy", *flags[:-1], "--mechanism", "de")
    assert "8 trials, 20,000 devices each, which answer one question" in out
    assert out.split()[:5] == ["mechanism", "epsilon", "total", "loss", "error"]
    code, out, _ = run(capsys, "plan", "--schema", schema, "--devices", 20_000)
    assert re.search(r"for every share to within 2 points \(95 %\): [\d,]+ devices", out)
    assert "of an even share in the worst question: " not in out
    told = json.loads(run(capsys, "plan", "--schema", schema, "--devices", 20_000, "--pilot", table, "--json")[1])
    needed = told["devices_for_points"]
    assert needed["1"]["epsilon"] == pytest.approx(25 * needed["5"]["epsilon"], rel=1e-3)
    assert "pilot" not in told
    wish = ["plan", "--schema", schema, "--devices", 10, "--accuracy", 0.9, "--pilot", table]
    assert "a draft without a label has not" in run(capsys, *wish)[2]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["accuracy", "--data", "TABLE", "--schema", "SCHEMA", "--mechanism", "rappor"], "invalid choice: 'rappor'"),
        (["accuracy", "--data", "TABLE", "--schema", "SCHEMA", "--epsilon", "0"], "above 0"),
        (["accuracy", "--data", "TABLE", "--schema", "SCHEMA", "--repeats", "1"], "at least 2"),
        (["accuracy", "--data", "TABLE", "--label", "bought"], "no column 'bought'"),
        (["accuracy", "--data", "TABLE", "--schema", "SCHEMA", "--journal", "FOLDER"], "not a journal of trials"),
        (PLAN, "give --devices"),
        ([*PLAN, "--published-epsilon", "1e-9"], "no number of devices"),
        ([*PLAN, "--published-epsilon", "1e-9", "--devices", "10"], "at least 1e-5"),
        ([*PLAN, "--accuracy", "0.9"], "needs --pilot"),
        ([*PLAN, "--accuracy", "recall=0.9"], "one of accuracy, balanced, area, called = a number, not 'recall=0.9'"),
        ([*PLAN, "--accuracy", "area=2"], "above 0 and below 1, not '2'"),
        ([*PLAN, "--accuracy", "0.99", "--pilot", "TABLE", "--devices", "1"], "do not reach"),
        ([*PLAN, "--published-epsilon", "0.1", "--devices", "10", "--epsilon", "1"], "leave out"),
        (["accuracy", "--data", "TABLE", "--schema", "SCHEMA", "--devices", "100", "--evaluating", "2"], "below 1"),
        (["accuracy", "--data", "TABLE", "--label", "sold", "--evaluating"], "--evaluating goes with --devices"),
        ([*EVALUATING, "--mechanism", "de"], "without --mechanism"),
        ([*EVALUATING, "--epsilon", "1", "2"], "and one --epsilon"),
        (["plan", "--schema", "nowhere.toml", "--devices", "10"], "nowhere.toml: cannot be read"),
        (["draft", "--data", "TABLE", "--label", "bought"], "no column 'bought'"),
        (["draft", "--data", "TABLE", "--label", "sold", "--output", "no/such/folder.json"], "cannot be written"),
        ([], "required: COMMAND"),
        (["census"], "invalid choice: 'census'"),
        (["population"], "required: --data"),
        (["population", "--data", "TABLE", "--label", "sold", "--devices", "0"], "at least 1, not '0'"),
        (["population", "--data", "TABLE", "--label", "sold", "--liars", "1"], "above 0 and below 1"),
        (["population", "--data", "TABLE", "--label", "bought"], "no column 'bought'"),
        (["population", "--data", "TABLE", "--schema", "nowhere.json"], "nowhere.json: cannot be read"),
        (["population", "--data", "TABLE", "--schema", "TABLE"], "not JSON"),
        (["population", "--data", "OTHER", "--schema", "SCHEMA"], "row 1: 'green' is not declared"),
        ([*POPULATION, "--url", NOBODY], "--url needs --aggregator-data"),
        ([*POPULATION, "--url", NOBODY, "--admin-url", NOBODY], f"{NOBODY}/admin/v1/campaigns cannot be reached"),
        ([*POPULATION, "--target", "no"], "--target goes with --liars"),
        ([*POPULATION, "--liars", "0.5", "--target", "never"], "must be one of yes, no"),
        (["population", "--data", "TABLE", "--liars", "0.5", "--target", "yes"], "--target is a class of a label"),
        (["accuracy", "--data", "TABLE", "--devices", "99", "--evaluating"], "of a model, which a campaign without"),
    ],
)
def test_a_mistake_is_one_clear_line_and_one_of_two_exit_codes(
    arguments, problem, table, schema, tmp_path, capsys, monkeypatch
):
    if "reached" in problem:
        monkeypatch.setenv(TOKEN_VARIABLE, "x")
    other = tmp_path / "other.csv"
    other.write_text("colour,size,sold\ngreen,1,yes\nred,1,no\n", encoding="utf-8")
    places = {"TABLE": table, "SCHEMA": schema, "FOLDER": tmp_path, "OTHER": other}
    code, out, err = run(capsys, *(places.get(argument, argument) for argument in arguments))
    assert code == (FAILED if any(part in problem for part in FOUND_LATER) else WRONG_USAGE)
    assert problem in err
    assert len(err.strip().splitlines()) == 1
    assert out == ""


def test_a_plan_for_windows_foresees_the_error_of_one_alone_and_smoothed(schema, capsys):
    flags = ("plan", "--schema", schema, "--devices", 52_000, "--windows", 52)
    code, out, err = run(capsys, *flags)
    assert (code, err) == (0, "")
    assert "each of 52 windows has 1,000 of the devices" in out
    told = json.loads(run(capsys, *flags, "--json")[1])
    for question, alone, filtered, smoothed in zip(
        told["questions"], *(told["windows"][name] for name in ("alone", "filtered", "smoothed")), strict=True
    ):
        assert alone == pytest.approx(question["standard_error"] * 52**0.5)
        assert question["standard_error"] < smoothed < filtered < alone / 2
    assert told["published"]["reports"] == 1_000, "whoever is in one window hides among its devices"


WAYS = [SPLIT, SPLIT_SMOOTHED, MEMOISED, BY_LOT, FILTERED, SMOOTHED]
FEW = ("--windows", 8, "--devices", 5_000, "--runs", 2)


def test_every_population_and_way_has_its_true_loss_its_error_and_how_often_intervals_hold(capsys):
    code, out, _ = run(capsys, "series", *FEW, "--epsilon", 2)
    assert code == 0
    assert "5,000 devices, 8 windows, 8 cells, a claimed loss of 2 for life; 2 runs" in out
    rows = [line for line in out.splitlines() if line.startswith(tuple(CHANGES))]
    assert [line[11:34].strip() for line in rows] == WAYS * len(CHANGES)
    assert all(line.endswith("%") == ("filtered" in line or "smoothed" in line) for line in rows)
    assert out.splitlines()[-1].startswith("Python ")


def test_json_has_the_same_and_a_seed_repeats_it(capsys):
    words = ("series", *FEW, "--population", "jump", "--seed", 3, "--json")
    code, out, _ = run(capsys, *words)
    told = json.loads(out)
    assert (code, told["devices"], told["seed"], {row["population"] for row in told["ways"]}) == (0, 5_000, 3, {"jump"})
    ways = {row["way"]: row for row in told["ways"]}
    assert ways[MEMOISED]["loss"] > 3 > 1 >= ways[SPLIT]["loss"] > 0.99
    assert ways[SMOOTHED]["error"] < ways[SPLIT]["error"] / 4
    assert (ways[SPLIT]["covered"], ways[SMOOTHED]["covered"] > 0.8, ways[SMOOTHED]["runs"]) == (None, True, 2)
    assert run(capsys, *words)[1] == out
    assert run(capsys, *words, "--seed", 4)[1] != out


def test_a_plan_of_a_crowd_needs_no_devices_and_solves_for_no_epsilon(tmp_path, capsys):
    path = tmp_path / "crowd.json"
    path.write_text(json.dumps(crowd_draft(most_local=16)))
    code, out, _ = run(capsys, "plan", "--schema", path)
    assert code == 0
    assert "20,000 in a batch" in out
    assert "where 50% are honest" in out
    assert "1 is promised, for 50%" in out
    told = json.loads(run(capsys, "plan", "--schema", path, "--json")[1])
    assert told["devices"] == 20_000
    assert [share for share, _ in told["crowd"]["cliff"]] == [1.0, 0.9, 0.75, 0.5, 0.25, 0.1]
    for flags in (("--epsilon", 1), ("--published-epsilon", 1)):
        code, _, err = run(capsys, "plan", "--schema", path, *flags)
        assert (code, "its local epsilon follows" in err) == (2, True)
