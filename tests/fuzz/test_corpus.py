"""Every target keeps its promise about its seeds and the kept corpus, and is shown to fail where something is planted.

``make fuzz`` looks for new inputs; those that reached new code, or that broke a promise once, are kept in ``corpus``.
"""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import fuzz_targets
import numpy as np
import pytest
from fuzz_door import the_server
from fuzz_targets import TARGETS, bounded

from ldp_aggregator import node_statistics
from ldp_aggregator.server.sockets import aiohttp_path, upload_path
from protocols import model, wire
from protocols.document import campaign

CORPUS = Path(__file__).resolve().parent / "corpus"
MOST_FILES, MOST_BYTES = 50, 100_000


def all_of(target, inputs):
    return [bounded(target.check, data) for data in inputs]


def inputs_of(name):
    return [*TARGETS[name].seeds(), *(path.read_bytes() for path in sorted((CORPUS / name).iterdir()))]


@pytest.fixture(autouse=True)
def _server_ends():
    yield
    if the_server.cache_info().currsize:
        the_server().stop()
        the_server.cache_clear()


@pytest.fixture
def traced():
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.parametrize("name", TARGETS)
def test_every_input_of_the_corpus_finds_the_promise_kept(name, traced):
    taken = all_of(TARGETS[name], inputs_of(name))
    assert any(taken)
    assert not all(taken)


def test_the_corpus_is_small_and_each_of_its_folders_has_a_target():
    files = [path for path in CORPUS.rglob("*") if path.is_file()]
    assert {path.parent.name for path in files} == set(TARGETS)
    assert len(files) <= MOST_FILES
    assert sum(path.stat().st_size for path in files) <= MOST_BYTES


class EqualToAll:
    __hash__ = None

    def __eq__(self, other):
        return True


def plant_an_error_of_jsons_own(patched):
    patched.setattr(campaign, "parse_json", lambda text, _: json.loads(text))


def plant_a_loss_that_is_not_checked(patched):
    patched.setattr(campaign, "exact_epsilon", lambda _: float("inf"))


def plant_probabilities_that_are_none(patched):
    patched.setattr(model, "_check_distribution", lambda *_: None)


def plant_a_second_encoding(patched):
    patched.setattr(wire, "encode_blocks", lambda _: EqualToAll())


def plant_a_share_for_another_campaign(patched):
    patched.setattr(node_statistics, "_vector", lambda _, value, __, ___: np.array(value[-1], dtype=np.int64))


def plant_a_head_that_fails_the_door(patched):
    patched.setattr(upload_path, "read_head", lambda head: {}[head])


def plant_an_answer_that_is_no_problem(patched):
    patched.setattr(aiohttp_path.ProblemError, "body", lambda self: b'{"code": "other"}')


def plant_a_bound_of_no_time(patched):
    patched.setattr(fuzz_targets, "SECONDS", 0.0)


def plant_a_bound_of_no_memory(patched):
    patched.setattr(fuzz_targets, "MEBIBYTES", 0)


@pytest.mark.parametrize(
    ("name", "plant"),
    [
        ("document", plant_an_error_of_jsons_own),
        ("document", plant_a_loss_that_is_not_checked),
        ("model", plant_probabilities_that_are_none),
        ("upload", plant_a_second_encoding),
        ("share", plant_a_share_for_another_campaign),
        ("door", plant_a_head_that_fails_the_door),
        ("door", plant_an_answer_that_is_no_problem),
        ("share", plant_a_bound_of_no_time),
        ("share", plant_a_bound_of_no_memory),
    ],
)
def test_a_planted_fault_breaks_the_promise(name, plant, monkeypatch, traced):
    inputs = inputs_of(name)
    campaign._parse.cache_clear()
    plant(monkeypatch)
    with pytest.raises((AssertionError, ArithmeticError, LookupError, ValueError)):
        all_of(TARGETS[name], inputs)
