"""Every leak is found, as it should be, or is a miss that is told; who keeps the promise passes, however odd.

Every run takes a few of the clients, each with as many trials as find it whatever the seed; all of them are taken at
length, with the command's default. The audit is wrong about a sound client with probability at most 0.1 %, and all
seeds here are fixed. Of a series whole lives are compared, and whoever makes something of time is found.
"""

from __future__ import annotations

import sys

import leaking_answers
import leaking_around
import numpy as np
import pytest
import series_clients
from audited import Client, cases
from audited_campaigns import campaign, compiled, question, scores
from drafts import text
from odd_but_sound_clients import SOUND

from ldp_aggregator.audit import Audit, audit
from ldp_aggregator.audit.asking.black_box import Person, command_client
from ldp_aggregator.audit.asking.lives import WINDOWS, Lives
from ldp_aggregator.audit.verdict import IMPOSSIBLE, LOSS

LEAKING = leaking_answers.LEAKING | leaking_around.LEAKING
"""Those without a code are what no black box catches; docs/audit.md has the list."""

TIGHT = {
    **{name: question(name, 4 if name == "de" else 8, 1.0) for name in ("de", "sue", "oue", "the", "ss")},
    **{name: question(name, 2, 1.0) for name in ("she", "laplace", "onebit", "sign")},
    "value and square of a number": campaign(numbers=1, continuous="sign"),
    "both questions of an evaluation": scores(),
}
"""Campaigns that ask little, so that most of their loss is found."""

FEW = (
    "rare-value-in-the-clear",
    "wrong-answers-in-the-clear",
    "padding-by-class",
    "true-bit-not-cleared",
    "id-from-the-record",
    "ids-count-by-class",
    "class-in-the-version",
    "long-header-by-class",
    "empty-upload-by-class",
    "coins-from-a-constant-seed",
    "noise-from-the-id",
    "study-answered-twice",
    "stored-for-one-class",
)
FEW_SOUND = ("random-ids", "uuid-4-ids", "hashed-coins", "truth-or-any-value", "sum-of-two-noises")


def audited(document: str, client: Client, times: int) -> Audit:
    return audit(document, client, times, rng=np.random.default_rng(1))


def codes(result: Audit) -> set[str]:
    """What is impossible for somebody is a loss above the claim too: chance says which of the two is told."""
    found = {finding.code for finding in result.findings}
    return found | {LOSS} if IMPOSSIBLE in found else found


@pytest.mark.parametrize(("name", "trials"), cases(LEAKING, {name: LEAKING[name].trials for name in FEW}))
def test_a_leak_is_found_or_is_a_miss_that_is_told(name, trials):
    leak = LEAKING[name]
    found = codes(audited(leak.document, leak.client(), max(leak.trials, trials)))
    assert leak.code in found if leak.code else not found


@pytest.mark.parametrize(("name", "trials"), cases(SOUND, dict.fromkeys(FEW_SOUND, 100), at_length=1000))
def test_a_client_that_only_looks_odd_passes(name, trials):
    """Wrong with probability 0.001 for each."""
    client = SOUND[name]
    found = codes(audited(client.document, client.client(), trials))
    # A counter also tells the place in the list, which the audit's own order makes the person's.
    # What then comes from one person alone is told as impossible or as a loss, by chance.
    place = {"tells-beside-the-answer", "tells-of-others-before", LOSS, IMPOSSIBLE}
    assert found - (place if name == "counting-ids" else set()) == ({client.code} if client.code else set())


@pytest.mark.parametrize(("name", "trials"), cases(TIGHT, {"de": 2500}))
def test_the_client_of_this_distribution_passes_and_most_of_its_own_loss_is_found(name, trials):
    """All but ``the`` have an event of the whole of exp(epsilon)."""
    result = audited(TIGHT[name], Client(), trials)
    assert result.findings == ()
    assert 0.85 * result.stated <= result.lower_bound <= result.stated


SERIES = compiled(
    2,
    0,
    [text("f0", "0", "1", "2")],
    privacy={"epsilon": 1.0, "discrete": "de"},
    windows={"from": "2027-01-04T00:00:00Z", "length": "P7D", "count": 52},
)


FEW_OF_TIME = {series_clients.two_answers: 40, series_clients.answer_kept_for_a_better_window: 100}


@pytest.mark.parametrize(("leak", "trials"), cases(series_clients.LEAKING, FEW_OF_TIME, 2_000))
def test_whoever_makes_something_of_time_is_found(leak, trials):
    result = audited(SERIES, series_clients.SeriesClient(leak), trials)
    assert {finding.code for finding in result.findings} & series_clients.LEAKING[leak], result.findings


@pytest.mark.parametrize("trials", [100, pytest.param(5_000, marks=pytest.mark.long)])
def test_the_sound_client_passes_and_most_of_its_loss_is_found(trials):
    result = audited(SERIES, series_clients.SeriesClient(series_clients.sound), trials)
    assert result.findings == ()
    assert 0.4 < result.lower_bound <= 1


OWN = [sys.executable, "-m", "ldp_client.testing.lines"]


@pytest.mark.long
def test_the_distributions_own_client_passes():
    assert audited(SERIES, command_client(OWN), 1_000).findings == ()


def test_the_distributions_own_client_sends_once_in_a_life_in_the_window_that_its_report_names():
    told = series_clients.lives_of(OWN, SERIES)
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
