"""Every part of the probability to be wrong is an exact tail, and the parts add up to the whole; the bounds are wrong
as seldom as they say, whatever the true probabilities are.
"""

import json
import math
from itertools import product

import msgpack
import numpy as np
import pytest
from audited_campaigns import CAMPAIGNS, campaign
from scipy.stats import binom
from sound_clients import Vectorised

from ldp_aggregator.audit import seeds
from ldp_aggregator.audit.asking.observations import Seen, read_tables, within
from ldp_aggregator.audit.asking.people import people_of
from ldp_aggregator.audit.repeats import Alike, ids_of, repeated_ids
from ldp_aggregator.audit.searching.comparisons import columns_of
from ldp_aggregator.audit.searching.events import fair_rounds, guess_bound, loss_bound, share_bound
from ldp_aggregator.audit.searching.guesses import Guesser, fixed_guesses, games
from ldp_aggregator.audit.verdict import SHARES

CONFIDENCE = 0.999


def upload(number, payload):
    return (msgpack.packb([1, [[number, bytes(16), payload]]]),)


def in_guesses(people, claim, guesses, alpha):
    """The bound of so many guesses among people, the chance of the best guesser, and the claim."""
    right = math.exp(claim) / (math.exp(claim) + people - 1)
    return lambda n, trials, alpha: guess_bound(n, trials - n, alpha, people), right, claim, guesses, alpha


def test_the_kinds_of_evidence_share_one_thousandth():
    assert sum(SHARES.values()) * (1 - CONFIDENCE) <= 1e-3 * (1 + 1e-12)
    assert min(SHARES.values()) > 0


@pytest.mark.parametrize(
    ("bound", "chance", "most", "trials", "alpha"),
    [
        *(in_guesses(people, claim, 400, 1e-3) for people, claim in product((3, 8, 72), (0.0, 1.0))),
        *(in_guesses(2, *rest) for rest in product((0.1, 1.0, 4.0), (5, 60, 2000), (0.05, 0.001))),
        *((share_bound, share, share, trials, 1e-4) for share, trials in product((1 / 2, 1 / 256), (50, 5000))),
    ],
)
def test_guesses_among_many_and_bits_and_bytes_of_uniform_ids_exceed_what_is_right_as_seldom_as_stated(
    bound, chance, most, trials, alpha
):
    """Exactly: of guesses, for the best guesser that the claim allows. Few guesses can be too few to exceed it."""
    exceeding = [n for n in range(trials + 1) if bound(n, trials, alpha) > most]
    assert binom.pmf(exceeding, trials, chance).sum() <= alpha
    assert exceeding or trials in (5, 60)


@pytest.mark.parametrize("equal", [0.5, 0.05])
def test_answers_that_are_as_alike_as_usual_are_excessive_as_seldom_as_stated_and_repeated_ids_alike(equal):
    pairs, alpha = 24, 0.02
    chances = binom.pmf(np.arange(pairs + 1), pairs, equal)
    wrong = sum(
        chances[one] * chances[other]
        for one, other in product(range(pairs + 1), repeat=2)
        if Alike("", one, pairs, other, pairs).excessive(alpha)
    )
    assert 0 < wrong <= alpha
    assert repeated_ids([bytes(16)] * 2, 1e-5) is not None
    assert repeated_ids([bytes(16)] * 2, 2.0**-129) is None
    assert repeated_ids([], 1e-5) is None


@pytest.mark.parametrize(
    ("equal", "usual", "more", "either_way"), [(100, 20, True, True), (20, 100, False, True), (60, 60, False, False)]
)
def test_many_more_answers_alike_are_excessive_and_many_fewer_too_but_for_whole_uploads(equal, usual, more, either_way):
    assert Alike("", equal, 200, usual, 200, either_way=False).excessive(1e-3) == more
    assert Alike("", equal, 200, usual, 200).excessive(1e-3) == either_way


@pytest.mark.parametrize("count", [2000, 40_000])
def test_words_of_uniform_ids_follow_a_twisters_recurrence_as_seldom_as_stated(monkeypatch, count):
    """A word follows with probability 2^-32: so many right ones are needed that chance has less than its share."""
    alpha = 1e-5
    zeros = np.zeros(count, dtype=np.int64)
    seen = Seen(1, zeros, zeros, ())
    for right in range(4):
        monkeypatch.setattr(seeds, "followed", lambda words, right=right: right * (len(words) > 0))
        by_chance = binom.sf(right - 1, 4 * count, 2.0**-32) if right else 1.0
        assert (seeds.twisted_ids(seen, alpha) is not None) == (by_chance <= alpha / 4)


@pytest.mark.parametrize("name", ["oue", "one of several", "all of several"])
def test_how_many_events_share_a_part_does_not_depend_on_what_was_seen(name):
    document = CAMPAIGNS[name]
    value = json.loads(document)
    people = people_of(value, np.random.default_rng(1))
    numbers = set()
    for seed, trials in ((1, 2), (2, 8), (3, 40)):
        answers = Vectorised(seed)(document, [person for person in people for _ in range(trials)])
        person = np.repeat(np.arange(len(people)), trials)
        seen = Seen(len(people), person, np.arange(len(person)) % 2, read_tables(answers))
        guesser, rng = Guesser(value, people, seen, len(people)), np.random.default_rng(seed)
        numbers.add((len(list(fixed_guesses(guesser, rng))), len(list(games(guesser, rng)))))
    assert len(numbers) == 1


def test_what_a_column_is_only_the_choosing_half_says():
    """Of the rows that choose, every code stays the same, whatever the others are; so do the numbers of codes."""
    rng = np.random.default_rng(3)
    rows = rng.integers(-50, 50, (200, 4)).astype("<i4")
    other = rows.copy()
    chooses = np.arange(200) % 2 == 0
    other[~chooses] = rng.integers(-9000, 9000, (100, 4))
    found = []
    for payloads in (rows, other):
        (table,) = read_tables([upload(0, row.tobytes()) for row in payloads])
        found.append([(c.name, c.values, c.codes[chooses].tolist()) for c in columns_of(table, chooses)])
    assert found[0] == found[1]


def test_a_campaign_of_many_questions_has_a_table_for_each_and_answers_are_numbered_within_their_persons():
    document = campaign(*[2] * 80, label=1)
    people = people_of(json.loads(document), np.random.default_rng(1))[:2]
    tables = read_tables(Vectorised(5)(document, [person for person in people for _ in range(1500)]))
    assert len(tables) == len({table.shape.questions for table in tables}) == 81
    assert len(set(ids_of(tables))) == 3000
    assert within(np.array([1, 0, 1, 1, 0]), 2).tolist() == [0, 0, 1, 2, 1]


def test_shapes_beyond_the_most_are_those_that_the_choosing_half_has_least():
    """Everybody's headers differ: the half that tests may be in any table, but it makes none."""
    answers = [upload(number, b"x") for number in (*range(128, 256), *range(256, 1600)) for _ in range(2)]
    chooses = np.arange(len(answers)) % 2 == 0
    changed = [
        answer if chosen else upload(60_000 + number, b"x")
        for number, (answer, chosen) in enumerate(zip(answers, chooses, strict=True))
    ]
    shapes = []
    for of in (answers, changed):
        tables = read_tables(of, chooses)
        assert sorted(np.concatenate([table.rows for table in tables])) == list(range(len(answers)))
        shapes.append({table.shape.header for table in tables if chooses[table.rows].any()})
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize(("one", "other"), [(0.5, 0.2), (0.02, 0.01), (0.9, 0.9)])
def test_an_event_exceeds_its_ratio_as_seldom_as_stated(one, other):
    trials, alpha = 80, 0.02
    ones = np.arange(trials + 1)
    bounds = loss_bound(ones[:, None], trials, ones[None, :], trials, alpha)
    chances = binom.pmf(ones, trials, one)[:, None] * binom.pmf(ones, trials, other)[None, :]
    assert chances[bounds > math.log(one / other)].sum() <= alpha


def test_nothing_seen_proves_nothing_and_what_was_never_seen_of_the_other_a_loss_that_grows_with_the_trials():
    assert loss_bound(0, 100, 0, 100, 0.01) == -np.inf
    assert loss_bound(100, 100, 100, 100, 0.01) < 0, "everything seen of both proves nothing"
    assert guess_bound(0, 10, 0.01) == guess_bound(0, 0, 0.01) == -math.inf
    assert guess_bound(10, 10, 0.01) < 0
    few, many = (float(loss_bound(n // 2, n, 0, n, 0.01)) for n in (100, 10_000))
    assert 1 < few < many - 4


def test_rounds_are_as_fair_coins_would_have_them_and_take_almost_all_uploads_or_are_not_played():
    class Heads:
        def binomial(self, rounds, probability):
            return rounds

    assert fair_rounds(1000, Heads()) is None
    assert fair_rounds(4, np.random.default_rng(1)) is None
    rng = np.random.default_rng(1)
    drawn = [fair_rounds(10_000, rng) for _ in range(2000)]
    assert None not in drawn
    ones = np.array([ones for ones, _ in drawn])
    assert {one + other for one, other in drawn} == {2 * 9717}
    assert ones.max() <= 10_000
    # False alarm 1e-5 each: a binomial's mean, and its standard deviation.
    assert abs(ones.mean() - 9717) < 4.5 * math.sqrt(9717 / 2 / 2000)
    assert abs(ones.std() / math.sqrt(9717 / 2) - 1) < 0.08


def test_the_bound_of_a_loss_is_that_of_two_exact_intervals_which_share_the_error():
    """Clopper and Pearson's: 60 of 100 is .4972 at least, 20 of 100 is .2918 at most, each but in 2.5 of 100 cases."""
    assert loss_bound(60, 100, 20, 100, 0.05) == pytest.approx(0.532796, abs=1e-6)
    assert loss_bound(100, 100, 0, 100, 0.05) == pytest.approx(3.281346, abs=1e-6)
