"""Noise that many nodes add up: the law of a share, of the sum, exactly; and what a sum with too little of it loses."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from math import comb, prod
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from ldp_aggregator.node_statistics import SUM_HEAD, DistributedShare, DistributedShareError, encode_distributed
from ldp_aggregator.trainers import (
    FederatedState,
    ShareError,
    combine,
    decode_distributed,
    decode_share,
    distributed_statistics,
    encode_share,
    model_of_sum,
)
from ldp_aggregator.trainers.federation.distributed_noise import _thinned, noise_share
from ldp_aggregator.trainers.federation.missing_noise import loss_of_part, most_loss_of_part
from ldp_aggregator.trainers.noise.integers import geometric
from ldp_aggregator.trainers.noise.randomness import SeededCoins
from ldp_aggregator.trainers.statistics import statistics_of
from protocols import Campaign

pytestmark = pytest.mark.filterwarnings("ignore::ldp_aggregator.trainers.noise.randomness.PrivacyWarning")

SCALE = Fraction(5, 2)
RATE = np.exp(-1 / float(SCALE))


@pytest.fixture(scope="module")
def campaign(schema):
    return Campaign.compile({"version": 1, "title": "Federated", **schema, "privacy": {"epsilon": 2}})


def coins(seed):
    return SeededCoins(np.random.default_rng(seed))


def check_law(draws, law, least, most):
    """Chi-square at a false-alarm rate of 1e-4; ``law`` gives P(X = x), the tails are one cell each."""
    inside = np.arange(least, most + 1)
    share = np.array([law(x) for x in inside])
    edges = np.array([sum(law(x) for x in range(least - 400, least)), sum(law(x) for x in range(most + 1, most + 401))])
    expected = np.concatenate(([edges[0]], share, [edges[1]])) * draws.size
    observed = np.bincount(np.clip(draws, least - 1, most + 1) - least + 1, minlength=len(expected))
    kept = expected > 0
    assert observed[~kept].sum() == 0
    assert stats.chisquare(observed[kept], expected[kept] * draws.size / expected[kept].sum()).pvalue > 1e-4


def polya_difference(shape):
    """P(X = x) of the difference of two negative binomials of this shape."""
    masses = stats.nbinom.pmf(np.arange(400), shape, 1 - RATE)
    law = np.convolve(masses, masses[::-1])
    return lambda x: law[x + 399] if abs(x) < 400 else 0.0


def laplace(x):
    return (1 - RATE) / (1 + RATE) * RATE ** abs(x)


def test_geometric_draws_follow_their_law():
    check_law(geometric(SCALE, 50_000, coins(1)), lambda x: (1 - RATE) * RATE**x if x >= 0 else 0.0, 0, 15)


@pytest.mark.parametrize("nodes", [1, 2, 3, 30])
def test_the_sum_of_the_shares_has_exactly_the_law_of_one_nodes_noise(nodes):
    draws = noise_share(SCALE, nodes, 20_000 * nodes, coins(nodes)).reshape(nodes, -1).sum(axis=0)
    check_law(draws, laplace, -10, 10)


@pytest.mark.parametrize("honest", [2, 5])
def test_a_single_share_has_the_polya_law(honest):
    check_law(noise_share(SCALE, honest, 50_000, coins(7)), polya_difference(1 / honest), -6, 6)


def test_more_nodes_than_are_needed_add_to_the_noise_as_much_as_they_say():
    draws = noise_share(SCALE, 4, 30_000 * 10, coins(3)).reshape(10, -1).sum(axis=0)
    check_law(draws, polya_difference(10 / 4), -15, 15)


def test_a_wide_sum_has_the_variance_of_the_law_it_states():
    """20,000 sums: the relative error of the variance has sd 1.6 %, so that 8 % is five of them."""
    scale = Fraction(1 << 20) * 21
    draws = noise_share(scale, 5, 5 * 20_000, coins(4)).reshape(5, -1).sum(axis=0)
    assert draws.astype(float).var() == pytest.approx(2 * float(scale) ** 2, rel=0.08)


@pytest.mark.parametrize(("total", "honest"), [(1, 3), (4, 2), (5, 3), (6, 4)])
def test_thinning_is_polyas_urn_in_rational_numbers(total, honest):
    """The law of what cycles leave, by the recursion of the code, is the beta-binomial law; and the code draws it."""

    def by_cycles(n):
        if not n:
            return {0: Fraction(1)}
        law: dict[int, Fraction] = {}
        for length in range(1, n + 1):
            for rest, share in by_cycles(n - length).items():
                for kept, chance in ((length, Fraction(1, honest)), (0, 1 - Fraction(1, honest))):
                    law[rest + kept] = law.get(rest + kept, Fraction(0)) + share * chance / n
        return law

    def rising(x, k):
        return prod((x + i for i in range(k)), start=Fraction(1))

    mine, others = Fraction(1, honest), 1 - Fraction(1, honest)
    urn = {
        k: comb(total, k) * rising(mine, k) * rising(others, total - k) / rising(Fraction(1), total)
        for k in range(total + 1)
    }
    assert by_cycles(total) == urn
    drawn = _thinned(np.full(50_000, total), honest, coins(total))
    expected = np.array([float(urn[k]) for k in range(total + 1)]) * drawn.size
    assert stats.chisquare(np.bincount(drawn, minlength=total + 1), expected).pvalue > 1e-4


def test_the_same_seed_repeats_and_the_system_does_not(campaign, table):
    def share(**more):
        return distributed_statistics(campaign, *table, nodes=4, **more)

    assert share(random_state=1) == share(random_state=1) != share(random_state=2)
    assert share() != share()


def masked(vectors, seed):
    """Pairwise masks modulo 2^64 that cancel in the sum: what a server of secure aggregation sees of each node."""
    rng = np.random.default_rng(seed)
    seen = [vector.astype(np.uint64) for vector in vectors]
    for one in range(len(seen)):
        for other in range(one):
            mask = np.frombuffer(rng.bytes(8 * len(seen[0])), dtype=np.uint64)
            seen[one], seen[other] = seen[one] + mask, seen[other] - mask
    return seen


def test_the_sum_of_masked_shares_gives_a_model_with_the_noise_of_about_one_node(campaign, table):
    """What the aggregation adds up says itself for whom its noise is: nobody has to tell ``model_of_sum``."""
    nodes, honest = 12, 9
    shares = shares_of(campaign, table, nodes, honest=honest)
    decoded = [decode_distributed(share, campaign) for share in shares]
    assert {(one.nodes, one.honest) for one in decoded} == {(nodes, honest)}
    total = np.sum(masked([one.summand() for one in decoded], 1), axis=0, dtype=np.uint64).astype(np.int64)
    assert tuple(total.tolist()) == combine(campaign, shares)
    model = model_of_sum(campaign, total.tolist())
    assert model.score(*table) > 0.8
    assert model.guarantee_.epsilon == 2
    assert (model.model_.training["nodes"], model.model_.training["honest"]) == (nodes, honest)
    assert "in sums with the shares of at least 9 honest nodes" in str(model.guarantee_)
    assert type(model).from_json(model.to_json()).guarantee_ == model.guarantee_
    exact = statistics_of(FederatedState(campaign).schema, *with_classes(campaign, table))
    assert (total[SUM_HEAD:] != exact).any()


def shares_of(campaign, table, nodes, **more):
    frame, labels = table
    return [
        distributed_statistics(campaign, frame[i::nodes].reset_index(drop=True), labels[i::nodes], nodes=nodes, **more)
        for i in range(nodes)
    ]


@pytest.mark.parametrize(("nodes", "honest"), [(1, 1), (2, 2), (3, 2), (4, 3), (9, 6), (10, 7), (100, 67)])
def test_by_default_a_third_of_the_nodes_may_drop_out_or_tell(campaign, table, nodes, honest):
    share = decode_distributed(distributed_statistics(campaign, *table, nodes=nodes), campaign)
    assert (share.nodes, share.honest) == (nodes, honest)


def test_a_third_that_dropped_out_leaves_a_model_and_one_more_leaves_none(campaign, table):
    shares = shares_of(campaign, table, 9)
    model = model_of_sum(campaign, combine(campaign, shares[3:]))
    assert (model.model_.training["nodes"], model.model_.training["honest"]) == (6, 6)
    with pytest.raises(ValueError, match="a sum of 5 shares protects less than epsilon: it takes those of 6"):
        combine(campaign, shares[4:])
    total = np.sum([decode_distributed(share, campaign).summand() for share in shares[4:]], axis=0)
    with pytest.raises(ValueError, match="a sum of 5 shares protects less than epsilon: it takes those of 6"):
        model_of_sum(campaign, total.tolist())


def test_shares_that_do_not_belong_together_are_not_combined(campaign, table):
    shares = shares_of(campaign, table, 3)
    other = distributed_statistics(campaign, *table, nodes=3, honest=3)
    more = distributed_statistics(campaign, *table, nodes=4, honest=2)
    for wrong, message in (
        ([*shares[:2], other], "a share is for 3 honest of 3 nodes, another for 2 of 3"),
        ([*shares[:2], more], "a share is for 2 honest of 4 nodes, another for 2 of 3"),
        ([*shares[:2], shares[0]], "a share is there twice"),
        ([*shares, distributed_statistics(campaign, *table, nodes=3)], "4 shares is of more than the 3 nodes"),
        (shares[:1], "a sum of 1 shares protects less than epsilon"),
        ([], "no share to add up"),
        ([encode_share(campaign, decode_distributed(shares[2], campaign).vector)], "a share of distributed noise is"),
    ):
        with pytest.raises(ValueError, match=message):
            combine(campaign, wrong)


def test_two_nodes_that_drew_the_same_numbers_are_two(campaign):
    """Without rows, and among many nodes, most numbers are 0: equal vectors are no copies."""
    zeros = np.zeros(len(FederatedState(campaign).totals), dtype=np.int64)
    shares = [encode_distributed(campaign, DistributedShare(zeros, 3, 2, serial)) for serial in (4, 5)]
    assert combine(campaign, shares)[:SUM_HEAD] == (2, 6, 18, 4, 8)
    with pytest.raises(ValueError, match="twice"):
        combine(campaign, [shares[0], shares[0]])


def test_a_sum_of_shares_that_are_not_alike_is_seen_without_seeing_a_share(campaign, table):
    alike = [decode_distributed(share, campaign).summand() for share in shares_of(campaign, table, 3)]
    for nodes, honest in ((3, 3), (4, 2), (6, 2), (3, 1)):
        other = decode_distributed(distributed_statistics(campaign, *table, nodes=nodes, honest=honest), campaign)
        with pytest.raises(ValueError, match="no sum of shares for equally many nodes"):
            model_of_sum(campaign, (alike[0] + alike[1] + other.summand()).tolist())
    four = alike[0] + alike[1] + alike[2] + alike[0]
    with pytest.raises(ValueError, match="4 shares is of more than the 3 nodes"):
        model_of_sum(campaign, four.tolist())


def with_classes(campaign, table):
    frame, labels = table
    return frame, FederatedState(campaign).schema.classes_of(labels, len(frame))


def test_what_is_no_sum_gives_no_model(campaign):
    size = len(FederatedState(campaign).totals)
    with pytest.raises(ValueError, match=rf"has {size + 5} integers, 5 of them before the statistics, not {size}"):
        model_of_sum(campaign, [100] * size)
    for head in ([0] * 5, [-3, -9, -27, -6, -12], [3, 9, 27, 0, 0], [3, 9, 28, 6, 12], [3, 10, 34, 6, 12]):
        with pytest.raises(ValueError, match="no sum of shares"):
            model_of_sum(campaign, [*head, *[100] * size])


@pytest.mark.parametrize(("nodes", "honest"), [(4, 5), (4, 0), (0, None), ((1 << 20) + 1, 5)])
def test_impossible_trust_is_refused(campaign, table, nodes, honest):
    with pytest.raises(ValueError, match="honest must be from 1 to the number of nodes"):
        distributed_statistics(campaign, *table, nodes=nodes, honest=honest)


def test_it_is_not_taken_for_a_share_with_all_its_noise_nor_the_other_way_round(campaign, table):
    share = distributed_statistics(campaign, *table, nodes=3)
    state = FederatedState(campaign)
    with pytest.raises(DistributedShareError, match="alone it protects less than epsilon") as caught:
        state.put("a", share)
    assert caught.value.code == "distributed-share"
    assert state.nodes == ()
    vector = decode_distributed(share, campaign).vector
    for data in (encode_share(campaign, vector), share[:-1], share + b"\0", b"", b"\x90"):
        with pytest.raises(ShareError):
            decode_distributed(data, campaign)
    for nodes, honest, serial in ((2, 3, 0), (0, 0, 0), ((1 << 20) + 1, 1, 0), (2, 1, -1), (2, 1, 1 << 63)):
        with pytest.raises(ShareError, match="honest from 1 to nodes"):
            decode_distributed(encode_distributed(campaign, DistributedShare(vector, nodes, honest, serial)), campaign)
    with pytest.raises(ShareError):
        decode_share(share[:-1], campaign)


def test_a_share_alone_has_mostly_no_noise_among_a_hundred_nodes(campaign, table):
    """Why nobody may see one: docs/trainers.md says "more than two thirds" of a share's numbers."""
    exact = statistics_of(FederatedState(campaign).schema, *with_classes(campaign, table))
    shares = [distributed_statistics(campaign, *table, nodes=100, random_state=seed) for seed in range(20)]
    vectors = [decode_distributed(share, campaign).vector for share in shares]
    assert {len(vector) for vector in vectors} == {len(exact)}
    assert np.mean([(vector == exact).mean() for vector in vectors]) > 2 / 3


PAGE = Path(__file__).resolve().parents[4] / "docs" / "trainers.md"


def losses_everywhere(part, claim, steps):
    """|ln P(x) / P(x + steps)| for x out to 5 scales, with scipy's law: nothing of the code, and not at 0 alone."""
    scale = steps / claim
    masses = stats.nbinom.pmf(np.arange(math.ceil(30 * scale)), part, -math.expm1(-1 / scale))
    law = np.correlate(masses, masses, "full")
    middle, reach = len(masses) - 1, math.ceil(5 * scale)
    places = middle + np.arange(-reach, reach)
    return np.abs(np.log(law[places] / law[places + steps]))


@pytest.mark.parametrize(("claim", "steps"), [(1.0, 1), (0.2, 1), (2.0, 5), (1.0, 60), (0.3, 12)])
@pytest.mark.parametrize("part", [1.0, 0.9, 0.7, 0.5, 0.3])
def test_it_is_the_largest_log_ratio_of_neighbours_anywhere(part, claim, steps):
    assert loss_of_part(part, claim, steps) == pytest.approx(losses_everywhere(part, claim, steps).max(), rel=1e-6)


@pytest.mark.parametrize(("part", "loss"), [(1.0, 1.0), (0.9, 1.19), (0.8, 1.44), (0.7, 1.80), (0.5, 3.1), (0.4, 4.3)])
def test_a_sum_that_claims_one_loses_on_a_grid_of_2000_steps(part, loss):
    assert round(loss_of_part(part, 1.0, 2000), 1 if part <= 0.5 else 2) == loss


@pytest.mark.parametrize("claim", [0.01, 0.1, 1.0, 5.0])
def test_all_of_the_noise_keeps_the_claim(claim):
    for steps in (1, 10, 200):
        assert loss_of_part(1.0, claim, steps) == pytest.approx(claim, rel=1e-9)
    assert most_loss_of_part(1.0, claim) == pytest.approx(claim)


@pytest.mark.parametrize("claim", [0.1, 1.0])
def test_a_finer_grid_loses_more_up_to_the_limit(claim):
    for part in (0.9, 0.8, 0.7):
        losses = [loss_of_part(part, claim, steps) for steps in (1, 10, 100, 1000, 10_000)]
        assert losses == sorted(losses)
        assert losses[-1] < most_loss_of_part(part, claim) < 1.05 * losses[-1]
    assert most_loss_of_part(0.5, claim) == math.inf


def test_small_claims_lose_by_a_larger_factor():
    factors = [most_loss_of_part(0.8, claim) / claim for claim in (2.0, 1.0, 0.5, 0.1)]
    assert factors == sorted(factors)


@pytest.mark.parametrize(
    ("part", "claim", "steps"), [(0.0, 1, 1), (1.1, 1, 1), (0.5, 0, 1), (0.5, math.inf, 1), (0.5, 1, 0)]
)
def test_what_is_no_part_claim_or_grid_is_refused(part, claim, steps):
    with pytest.raises(ValueError, match="must be"):
        loss_of_part(part, claim, steps)


def test_the_table_of_the_page_is_what_the_code_says():
    rows = re.findall(r"^\| (0\.\d|1) \|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [row[0] for row in rows] == ["1", "0.9", "0.8", "0.7", "0.6", "0.5"]
    for part, cells in rows:
        r = float(part)
        for claim, printed in zip((1.0, 0.1), np.array_split(np.array(cells.split("|")), 2), strict=True):
            computed = [loss_of_part(r, claim, 1), loss_of_part(r, claim, 2000), most_loss_of_part(r, claim)]
            wanted = ["unbounded" if math.isinf(loss) else f"{loss / claim:.2f}" for loss in computed]
            assert [cell.strip() for cell in printed] == wanted, part
