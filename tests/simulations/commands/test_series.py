"""The command that compares what one loss for life is worth over many windows."""

import json

from buyers import run

from simulations.studies.series import BY_LOT, CHANGES, FILTERED, MEMOISED, SMOOTHED, SPLIT, SPLIT_SMOOTHED

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
