"""The audit of a series: whole lives are compared, and whoever makes something of time is found."""

import sys

import numpy as np
import pytest
from audited import cases
from audited_campaigns import compiled
from drafts import text
from series_clients import LEAKING, SeriesClient, answer_kept_for_a_better_window, lives_of, sound, two_answers

from ldp_aggregator.audit import audit
from ldp_aggregator.audit.asking.black_box import Person, command_client
from ldp_aggregator.audit.asking.lives import WINDOWS, Lives

SERIES = compiled(
    2,
    0,
    [text("f0", "0", "1", "2")],
    privacy={"epsilon": 1.0, "discrete": "de"},
    windows={"from": "2027-01-04T00:00:00Z", "length": "P7D", "count": 52},
)


def found(client, trials):
    result = audit(SERIES, client, trials, rng=np.random.default_rng(1))
    return {finding.code for finding in result.findings}, result


FEW = {two_answers: 40, answer_kept_for_a_better_window: 100}


@pytest.mark.parametrize(("leak", "trials"), cases(LEAKING, FEW, 2_000))
def test_whoever_makes_something_of_time_is_found(leak, trials):
    codes, result = found(SeriesClient(leak), trials)
    assert codes & LEAKING[leak], codes
    assert not result.passed


@pytest.mark.parametrize("trials", [100, pytest.param(5_000, marks=pytest.mark.long)])
def test_the_sound_client_passes_and_most_of_its_loss_is_found(trials):
    codes, result = found(SeriesClient(sound), trials)
    assert codes == set()
    assert 0.4 < result.lower_bound <= 1


OWN = [sys.executable, "-m", "ldp_client.testing.lines"]


@pytest.mark.long
def test_the_distributions_own_client_passes():
    codes, _ = found(command_client(OWN), 1_000)
    assert codes == set()


def test_the_distributions_own_client_sends_once_in_a_life_in_the_window_that_its_report_names():
    told = lives_of(OWN, SERIES)
    assert len(set(told)) > 1
    assert all(window == named for window, named in told)


def test_people_change_between_windows_at_every_place():
    lives = Lives.of(SERIES)
    people = tuple(Person({"f0": str(number)}, "c0") for number in range(3))
    asked = lives.people(people)
    assert asked[:3] == people
    changes = {
        tuple(life.in_window(window).record["f0"] != life.in_window(window + 1).record["f0"] for window in range(3))
        for life in asked
    }
    assert changes == {(False,) * 3, (True, False, False), (False, True, False), (False, False, True), (True,) * 3}
    assert len(lives.told["questions"]) == WINDOWS
    assert [question["window"] for question in lives.told["questions"]] == list(range(WINDOWS))
