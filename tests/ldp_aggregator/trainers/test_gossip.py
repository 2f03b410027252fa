"""Push-sum: sum and weight are conserved between nodes that live, whatever is lost, and a node survives its process."""

import itertools
import re
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from ldp_aggregator.trainers import PushSumNode, push_sum
from ldp_aggregator.trainers.gossip import Push

PAGE = Path(__file__).resolve().parents[3] / "docs" / "trainers.md"


def rounds_needed(kind, nodes, seed):
    """Until no node is further than 1e-3 of the mean from it, in any number."""
    vectors = (
        np.random.default_rng([1, seed]).normal(10, 3, size=(nodes, 5)) if kind == "alike" else np.eye(nodes)[:, :1]
    )
    mean = vectors.mean(axis=0)
    return next(
        rounds
        for rounds in itertools.count(1)
        if np.abs(push_sum(vectors, rounds, np.random.default_rng(seed)) / mean - 1).max() < 1e-3
    )


@pytest.mark.parametrize(("kind", "place"), [("alike", 0), ("one has everything", 1)])
@pytest.mark.parametrize(("column", "nodes"), [(0, 10), (1, 100)])
def test_push_sum_takes_as_many_rounds_as_the_page_says(kind, place, column, nodes):
    """The page has medians of 500 runs and more; 99.9 % of the medians of 25 runs, resampled, were within 2 of them."""
    stated = re.findall(r"(\d+), (\d+) and (\d+) rounds", PAGE.read_text(encoding="utf-8"))[place]
    needed = [rounds_needed(kind, nodes, seed) for seed in range(25)]
    assert abs(np.median(needed) - int(stated[column])) <= 2


def crowd(count):
    vectors = np.random.default_rng(count).normal(10, 3, size=(count, 4))
    return {str(place): PushSumNode(vector) for place, vector in enumerate(vectors)}, vectors


def totals(nodes):
    return sum(node.weight for node in nodes), sum(node.vector for node in nodes)


def resent(nodes, sender, push, rng, lost):
    """Three attempts, of which requests and answers are lost; then the half is taken back."""
    for _ in range(3):
        if rng.random() < lost:
            continue
        nodes[push.target].receive(sender.name, push)
        if rng.random() >= lost:
            return sender.arrived(push.number)
    return sender.take_back(push.number)


def settle_all(nodes):
    for sender in nodes.values():
        for push in list(sender.doubted.values()):
            taken = nodes[push.target].settle(sender.name, [push.number])
            sender.settled(push.number, push.number in taken)


@pytest.mark.parametrize("lost", [0.0, 0.3, 0.6])
def test_whatever_requests_and_answers_are_lost_nothing_is_gone_or_counted_twice(lost):
    rng = np.random.default_rng(1)
    nodes, vectors = crowd(6)
    doubted = 0
    for number, node in itertools.product(range(60), nodes.values()):
        resent(nodes, node, node.push(str(rng.integers(6))), rng, lost)
        doubted += len(node.doubted)
        if number % 7 == 0:
            settle_all(nodes)
    settle_all(nodes)
    for _ in range(40):
        for node in nodes.values():
            resent(nodes, node, node.push(str(rng.integers(6))), rng, 0.0)
    assert (doubted > 0) == (lost > 0)
    weight, vector = totals(nodes.values())
    assert weight == pytest.approx(6, abs=1e-9)
    assert vector == pytest.approx(vectors.sum(axis=0), rel=1e-9)
    assert all(node.mean == pytest.approx(vectors.mean(axis=0), rel=1e-6) for node in nodes.values())


def test_one_dead_node_of_five_leaves_the_others_with_the_mean_of_what_is_left():
    """It dies in round 6 with what it holds; the rounds are as many as with five."""
    rng = np.random.default_rng(2)
    nodes, vectors = crowd(5)
    for number in range(40):
        living = {name: node for name, node in nodes.items() if number < 6 or name != "0"}
        for node in living.values():
            push = node.push(str(rng.integers(5)))
            if push.target in living:
                resent(nodes, node, push, rng, 0.0)
            else:
                node.take_back(push.number)
    dead = nodes.pop("0")
    weight, vector = totals(nodes.values())
    assert weight == pytest.approx(5 - dead.weight)
    assert vector == pytest.approx(vectors.sum(axis=0) - dead.vector)
    assert all(node.mean == pytest.approx(vector / weight, rel=1e-3) for node in nodes.values())


def test_a_push_that_was_asked_for_before_it_came_is_refused_when_it_comes():
    sender, receiver = PushSumNode(np.array([4.0])), PushSumNode(np.array([2.0]))
    late = sender.push("receiver")
    sender.take_back(late.number)
    assert receiver.settle(sender.name, [late.number]) == []
    sender.settled(late.number, False)
    receiver.receive(sender.name, late)
    assert totals([sender, receiver]) == (2.0, [6.0])
    assert (sender.open, sender.doubted) == ({}, {})


def test_a_node_that_gave_up_more_than_it_holds_says_that_more_rounds_are_needed():
    sender, receiver = PushSumNode(np.array([4.0])), PushSumNode(np.array([2.0]))
    push = sender.push("receiver")
    receiver.receive(sender.name, push)
    sender.take_back(push.number)
    for _ in range(2):
        one = sender.push("receiver")
        receiver.receive(sender.name, one)
        sender.arrived(one.number)
    sender.settled(push.number, push.number in receiver.settle(sender.name, [push.number]))
    assert totals([sender, receiver]) == (2.0, [6.0]), "all the same nothing is lost"
    with pytest.raises(ValueError, match=r"holds weight -0.25; more rounds are needed"):
        _ = sender.mean


def test_a_restarted_node_is_the_one_it_was_after_every_step_and_draws_no_noise_again(tmp_path):
    drawn = []

    def draw():
        drawn.append(1)
        return np.array([1.0, 1 / 3])

    def held(node):
        parts = {name: value for name, value in vars(node).items() if name not in ("_file", "vector")}
        return {**parts, "vector": node.vector.tolist()}

    other = Push(0, "x", [0.1, 0.7], 0.5)
    steps = (
        lambda node: None,
        lambda node: node.push("a"),
        lambda node: node.push("b"),
        lambda node: node.receive("c", other),
        lambda node: node.receive("c", other),
        lambda node: node.arrived(0),
        lambda node: node.take_back(1),
        lambda node: node.settle("c", [0, 1]),
        lambda node: node.settled(1, True),
    )
    file = tmp_path / "node.db"
    for step in steps:
        node = PushSumNode.opened(file, draw)
        step(node)
        left = held(node)
        node.close()
        again = PushSumNode.opened(file, draw)
        assert held(again) == left
        again.close()
    assert (len(drawn), left["pushes"], dict(left["_heard"])) == (1, 2, {"c": {0: True, 1: False}})


def test_a_file_has_one_process_at_a_time_and_no_other_content(tmp_path):
    file = tmp_path / "node.db"
    node = PushSumNode.opened(file, lambda: np.zeros(1))
    with pytest.raises(ValueError, match=r"node.db is not the free state file of a gossip node: database is locked"):
        PushSumNode.opened(file, lambda: pytest.fail("draws again"))
    node.close()
    (tmp_path / "text").write_text("no database, however long it is " * 9)
    with pytest.raises(ValueError, match="not the free state file"):
        PushSumNode.opened(tmp_path / "text", lambda: pytest.fail("draws"))
    with sqlite3.connect(file) as kept:
        kept.execute("""UPDATE gossip SET state = '{"version": 2}'""")
    kept.close()
    with pytest.raises(ValueError, match="version 2"):
        PushSumNode.opened(file, lambda: pytest.fail("draws"))


def test_a_draw_that_fails_leaves_no_node_behind(tmp_path):
    with pytest.raises(ZeroDivisionError):
        PushSumNode.opened(tmp_path / "node.db", lambda: 1 / 0)
    PushSumNode.opened(tmp_path / "node.db", lambda: np.ones(2)).close()
