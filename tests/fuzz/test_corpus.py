"""Every target keeps its promise about its seeds and the kept corpus, and is shown to fail where something is planted.

``make fuzz`` looks for new inputs; those that reached new code, or that broke a promise once, are kept in ``corpus``.
"""

import json
import tracemalloc
from pathlib import Path

import fuzz_targets
import msgpack
import numpy as np
import pytest
from fuzz_door import the_server
from fuzz_targets import TARGETS, bounded

from ldp_aggregator.server.sockets import upload_path
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


def unchecked_share(data, _campaign):
    """The integers of a share, whichever campaign it is for."""
    return np.array(msgpack.unpackb(data)[-1])


FAULTS = {
    "an error of JSON's own": ("document", campaign, "parse_json", lambda text, _: json.loads(text)),
    "a loss that is not checked": ("document", campaign, "exact_epsilon", lambda _: float("inf")),
    "probabilities that are none": ("model", model, "_check_distribution", lambda *_: None),
    "a second encoding": ("upload", wire, "encode_blocks", lambda *_: EqualToAll()),
    "a share for another campaign": ("share", fuzz_targets, "decode_share", unchecked_share),
    "a head that fails the door": ("door", upload_path, "read_head", lambda head: {}[head]),
    "an answer that is no problem": ("door", upload_path.ProblemError, "body", lambda self: b'{"code": "other"}'),
    "a bound of no time": ("share", fuzz_targets, "SECONDS", 0.0),
    "a bound of no memory": ("share", fuzz_targets, "MEBIBYTES", 0),
}


@pytest.mark.parametrize(("name", "where", "what", "planted"), FAULTS.values(), ids=FAULTS)
def test_a_planted_fault_breaks_the_promise(name, where, what, planted, monkeypatch, traced):
    inputs = inputs_of(name)
    campaign._parse.cache_clear()
    monkeypatch.setattr(where, what, planted)
    with pytest.raises((AssertionError, ArithmeticError, LookupError, ValueError)):
        all_of(TARGETS[name], inputs)
