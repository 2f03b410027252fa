"""The guard of a masked sum refuses what a server could set or ask to see more than the sum; and its digits."""

from __future__ import annotations

import numpy as np
import pytest

from ldp_aggregator.flower.masked_sum.agreement import Agreement, agreement_of
from ldp_aggregator.flower.masked_sum.guard import GuardError, Progress, check_in_clear, checked_stage, expected_setup
from ldp_aggregator.flower.masked_sum.limbs import of_means, to_limbs
from ldp_aggregator.flower.settings import SettingsError

AGREED = Agreement(nodes=10, honest=7)
ME = 3
SETUP = {"stage": "setup", **expected_setup(AGREED)}
KEYS = {"stage": "share_keys"} | {str(name): [b"1", b"2"] for name in range(10)}
OTHERS = [name for name in range(10) if name != ME]
COLLECT = {"stage": "collect_masked_vectors", "ctxts": [b""] * 9, "srcs": OTHERS}
UNMASK = {"stage": "unmask", "active_nids": [0, 1, 2, 3, 4, 5, 6, 7], "dead_nids": [8, 9]}


def after(*messages) -> Progress:
    progress = Progress()
    for values in messages:
        progress = checked_stage(AGREED, progress, ME, "train", values)
    return progress


def refuses(progress, values, message, message_type="train"):
    with pytest.raises(GuardError, match=message):
        checked_stage(AGREED, progress, ME, message_type, values)


def test_the_four_stages_of_a_sum_as_agreed_go_through():
    progress = after(SETUP, KEYS, COLLECT, UNMASK)
    assert progress.unmasked
    assert progress.sources == frozenset(range(10))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sample_num", 2),
        ("sample_num", 11),
        ("share_num", 3),
        ("threshold", 1),
        ("threshold", 6),
        ("threshold", 8),
        ("threshold", True),
        ("threshold", 7.0),
        ("clipping_range", 8.0),
        ("clipping_range", 1 << 15),
        ("target_range", 1 << 22),
        ("mod_range", 1 << 31),
        ("mod_range", 1 << 33),
        ("max_weight", 1000.0),
        ("max_weight", float("nan")),
        ("max_weight", None),
    ],
)
def test_each_other_parameter_is_refused(name, value):
    refuses(Progress(), SETUP | {name: value}, f"{name} must be ")


def test_a_parameter_that_nobody_knows_is_refused():
    refuses(Progress(), SETUP | {"reveal": 1}, "and no others")
    refuses(Progress(), {name: value for name, value in SETUP.items() if name != "threshold"}, "threshold must be 7")


@pytest.mark.parametrize("message_type", ["query", "evaluate", "train.other", "query.nb_share", "reconnect"])
def test_other_messages_are_refused_in_every_stage(message_type):
    refuses(Progress(), SETUP, 'answers "train" messages alone', message_type)


@pytest.mark.parametrize("stage", [None, "fit", 3])
def test_other_stages_are_refused(stage):
    refuses(Progress(), {"stage": stage}, "is no stage of a masked sum")


def test_a_second_collection_is_refused_from_its_setup_on():
    for progress in (after(SETUP, KEYS, COLLECT), after(SETUP, KEYS, COLLECT, UNMASK)):
        refuses(progress, SETUP, "in a sum already; a second one would show it")
        refuses(progress, COLLECT, "in a sum already; a second one would show it")


def test_a_sum_that_never_got_to_the_shares_may_begin_again():
    assert after(SETUP, KEYS, SETUP, KEYS, COLLECT).collected


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (range(2, 8), "keys of 7 to 10 nodes are due, not of 6"),
        (range(11), "keys of 7 to 10 nodes are due, not of 11"),
        (range(4, 12), "own key is not among"),
    ],
)
def test_keys_of_too_few_too_many_or_others_are_refused(names, message):
    refuses(after(SETUP), {"stage": "share_keys"} | {str(name): [b"1", b"2"] for name in names}, message)


@pytest.mark.parametrize("name", ["03", "-3", "three", "³"])
def test_names_of_nodes_that_are_none_are_refused(name):
    refuses(after(SETUP), KEYS | {name: [b"1", b"2"]}, "each once")


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ([0, 1, 2, 4, 5], "6 nodes are left; a sum takes 7"),
        ([*OTHERS, 77], "other nodes than those whose keys"),
        ([*OTHERS, ME], "other nodes than those whose keys"),
        ([*OTHERS, 1], "srcs must be a list of nodes, each once"),
        ([True, 2, 4, 5, 6, 7], "srcs must be a list of nodes, each once"),
        (None, "srcs must be a list of nodes, each once"),
    ],
)
def test_a_collection_of_too_few_or_of_strangers_is_refused(sources, message):
    refuses(after(SETUP, KEYS), COLLECT | {"srcs": sources}, message)


@pytest.mark.parametrize(
    ("active", "dead", "message"),
    [
        ([0, 1, 2, 3, 4, 5], [6, 7, 8, 9], "the sum would be of 6 nodes; it takes 7"),
        ([0, 1, 2, 3, 4, 5, 6, 7], [7, 8, 9], "as there and as not there"),
        ([0, 1, 2, 4, 5, 6, 7, 8], [3, 9], "this node's share is listed as not there"),
        ([0, 1, 2, 3, 4, 5, 6, 7], [8], "not those that shared their secrets"),
        ([0, 1, 2, 3, 4, 5, 6, 7, 77], [8, 9], "not those that shared their secrets"),
        ([0, 1, 2, 3, 3, 5, 6, 7], [8, 9], "active_nids must be a list of nodes, each once"),
        ([0, 1, 2, 3, 4, 5, 6, 7], "89", "dead_nids must be a list of nodes, each once"),
    ],
)
def test_an_unmask_that_would_show_more_than_the_sum_is_refused(active, dead, message):
    values = {"stage": "unmask", "active_nids": active, "dead_nids": dead}
    refuses(after(SETUP, KEYS, COLLECT), values, message)


def test_secrets_are_given_once_and_never_before_the_masked_share():
    refuses(
        after(SETUP, KEYS, COLLECT, UNMASK), UNMASK | {"dead_nids": [9], "active_nids": list(range(9))}, "given once"
    )
    refuses(after(SETUP, KEYS), UNMASK, "given once, after the masked share")
    refuses(Progress(), UNMASK, "given once, after the masked share")


@pytest.mark.parametrize(
    ("parameters", "numbers", "texts", "message"),
    [
        (["0"], {"num_examples": 1}, {}, "beside its masked form"),
        ([], {"num_examples": 812}, {}, "number of examples"),
        ([], {"num_examples": 1, "rows": 5}, {}, "number of examples"),
        ([], {}, {}, "number of examples"),
        ([], {"num_examples": 1}, {"accuracy": 0.9}, "metrics travel in clear"),
    ],
)
def test_only_constants_travel_in_clear(parameters, numbers, texts, message):
    check_in_clear([], {"num_examples": 1}, {})
    with pytest.raises(GuardError, match=message):
        check_in_clear(parameters, numbers, texts)


@pytest.mark.parametrize("nodes", [3, 4, 5, 10, 40, 1024])
def test_no_divided_view_gives_a_server_both_secrets_of_a_node(nodes):
    """However it divides the honest nodes, with all others on its side, it lacks a share of one of the two."""
    for honest in {1, 2, nodes // 2, -(-2 * nodes // 3), nodes}:
        agreed, others = Agreement(nodes, honest), nodes - honest
        assert honest <= agreed.threshold <= nodes
        assert all(
            min(others + told_there, others + honest - told_there) < agreed.threshold
            for told_there in range(honest + 1)
        )


@pytest.mark.parametrize("config", [{"nodes": 2, "honest": 2}, {"nodes": 5, "honest": 6}, {"nodes": 5, "honest": 0}])
def test_an_agreement_that_cannot_be_is_refused(config):
    with pytest.raises(SettingsError, match="must be from"):
        agreement_of(config)


@pytest.mark.parametrize("config", [{"nodes": 5}, {"nodes": 5.0, "honest": 4}, {"nodes": True, "honest": 1}])
def test_an_agreement_without_whole_numbers_is_refused(config):
    with pytest.raises(SettingsError, match="must be a whole number"):
        agreement_of(config)


@pytest.mark.parametrize("nodes", [1, 3, 40, 1024])
def test_digits_add_up_to_the_integers_bit_for_bit(nodes):
    rng = np.random.default_rng(nodes)
    values = [
        [int(value) for value in rng.integers(-(1 << 62), 1 << 62, 8)] + [1 << 62, -(1 << 62), 0] for _ in range(nodes)
    ]
    means = np.sum([to_limbs(row) for row in values], axis=0) / nodes
    assert of_means(means, nodes) == tuple(sum(column) for column in zip(*values, strict=True))
    digits = to_limbs(values[0])
    assert ((digits >= -(1 << 15)) & (digits < 1 << 15)).all()


def test_what_is_no_digit_is_refused():
    with pytest.raises(ValueError, match="magnitude at most 2"):
        to_limbs([(1 << 62) + 1])
    for means in (np.array([0.4, 0, 0, 0]), np.zeros(5), np.array([np.nan, 0, 0, 0])):
        with pytest.raises(ValueError, match="no means of digits"):
            of_means(means, 3)
