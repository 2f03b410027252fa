"""The time of an answer tells people apart, or it does not: with any load of the machine."""

import json
import sys
import threading

import numpy as np
import pytest
from audited_campaigns import campaign
from scipy.stats import binom

from ldp_aggregator.audit import Person, command_stopwatch
from ldp_aggregator.audit.asking.people import people_of
from ldp_aggregator.audit.searching import times as times_module
from ldp_aggregator.audit.searching.times import Times, ask_times, least_delay, slow_answers

PEOPLE = tuple(Person({"x": number}, f"c{number % 4}") for number in range(16))


def busy(rng, rounds):
    """Times of a machine that others use: a drift, a tail of whole milliseconds, and times when nothing goes on."""
    drift = 1 + np.cumsum(rng.normal(0, 0.01, rounds)).clip(-0.5, 3)
    waits = np.where(rng.random(rounds) < 0.1, rng.exponential(4e-3, rounds), 0)
    stalls = np.repeat(rng.random(rounds // 50 + 1) < 0.1, 50)[:rounds] * 2e-3
    return 120e-6 * drift * rng.lognormal(0, 0.1, rounds) + waits + stalls


def measured(seed, delay=lambda person: 0.0, rounds=4000):
    rng = np.random.default_rng(seed)
    who = rng.integers(0, len(PEOPLE), rounds)
    later = np.array([delay(person) for person in PEOPLE])
    return Times(PEOPLE, who, busy(rng, rounds) + later[who])


@pytest.mark.parametrize(
    "delay",
    [
        lambda person: 150e-6 * (person.label == "c3"),
        lambda person: -150e-6 * (person.label == "c3"),
        lambda person: 300e-6 * (person.record["x"] == 5),
        lambda person: 300e-6 * (person.record["x"] != 5),
    ],
    ids=["a class", "a class that is faster", "one person", "all but one"],
)
def test_people_who_are_answered_at_another_time_are_found(delay):
    base = 150e-6 if delay(PEOPLE[3]) < 0 else 0.0
    found = slow_answers(measured(1, lambda person: base + delay(person)), 1e-5)
    assert found is not None
    assert "microseconds" in found


def test_a_difference_below_the_tolerance_is_none_of_a_sound_client_and_the_delay_that_is_said_to_be_found_is():
    times = measured(2, lambda person: 40e-6 * (person.label == "c3"))
    assert times.tolerance >= 50e-6
    assert slow_answers(times, 0.05) is None
    assert slow_answers(Times(PEOPLE, np.zeros(0, dtype=np.int64), np.zeros(0)), 0.05) is None
    times = measured(4)
    least = least_delay(times, 1e-5)
    assert times.tolerance < least < 1e-3
    slower = Times(PEOPLE, times.who, times.seconds + 1.2 * least * (times.who == 0))
    assert slow_answers(slower, 1e-5) is not None


def test_however_busy_the_machine_is_a_sound_client_is_suspected_as_seldom_as_is_stated():
    """Even of differences that fill the tolerance. False alarm of the test: 1e-6; seeds are fixed."""
    runs, alpha = 24, 0.1
    for delay in (0.0, 50e-6):
        failed = sum(
            slow_answers(measured([3, n], lambda person, d=delay: d * (person.label == "c3"), 800), alpha) is not None
            for n in range(runs)
        )
        assert failed <= binom.ppf(1 - 1e-6, runs, alpha)


@pytest.mark.parametrize(("chance", "is_told"), [(0.0126, False), (0.0124, True)])
def test_the_eight_comparisons_that_are_tested_share_the_probability_to_be_wrong(monkeypatch, chance, is_told):
    """Of a tenth each has an eightieth."""
    monkeypatch.setattr(times_module, "_chances", lambda _, groups, cuts, __: np.full((len(groups), len(cuts)), chance))
    assert (slow_answers(measured(5, rounds=100), 0.1) is not None) is is_told


def test_only_people_who_hold_everything_are_timed():
    document = campaign(3, 2)
    asked = []

    def stopwatch(document, people, patience):
        asked.extend(people)
        return [1e-4] * len(people)

    people = people_of(json.loads(document), np.random.default_rng(1))
    ask_times(document, stopwatch, people, np.random.default_rng(1))
    assert {tuple(sorted(person.record)) for person in asked} == {("f0", "f1")}
    assert {person.record["f0"] for person in asked} <= {"0", "1", "2"}


SLEEPY = """
import json, sys, time
for line in sys.stdin:
    if json.loads(line)["label"] == "c1":
        time.sleep(0.003)
    print("00", flush=True)
"""


def test_a_program_is_asked_one_line_after_the_other_until_patience_ends_and_silence_is_told():
    """A program that is asked again only when it has answered cannot have slept while others waited."""
    people = [Person({"f0": "0"}, f"c{number % 2}") for number in range(60)]
    seconds = command_stopwatch([sys.executable, "-c", SLEEPY])(campaign(3), people, 60.0)
    assert len(seconds) == 60
    assert min(seconds[1::2]) >= 0.003
    assert min(seconds[0::2]) < 0.003  # Thirty times in a row no machine is as slow as that by chance.
    people = people[1:2] * 500
    assert len(command_stopwatch([sys.executable, "-c", SLEEPY])(campaign(3), people, 0.0)) == 1
    with pytest.raises(ChildProcessError, match="answered 0 lines"):
        command_stopwatch([sys.executable, "-c", "pass"])(campaign(3), people, 1.0)
    timers = (thread for thread in threading.enumerate() if isinstance(thread, threading.Timer))
    assert all(timer.finished.is_set() for timer in timers), "the interpreter's end waits for them"
