"""Every target keeps its promise about its seeds and the kept corpus.

``make fuzz`` looks for new inputs; those that reached new code, or that broke a promise once, are kept in ``corpus``.
"""

import tracemalloc
from pathlib import Path

import pytest
from fuzz_door import the_server
from fuzz_targets import TARGETS, bounded

CORPUS = Path(__file__).resolve().parent / "corpus"
MOST_FILES, MOST_BYTES = 50, 100_000


@pytest.fixture
def _traced():
    """Memory is; and a server that was asked ends."""
    tracemalloc.start()
    yield
    tracemalloc.stop()
    if the_server.cache_info().currsize:
        the_server().stop()
        the_server.cache_clear()


@pytest.mark.usefixtures("_traced")
@pytest.mark.parametrize("name", TARGETS)
def test_every_input_of_the_corpus_finds_the_promise_kept(name):
    TARGETS[name].check(TARGETS[name].seeds()[0])  # What it takes to begin is done before anything is counted.
    inputs = [*TARGETS[name].seeds(), *(path.read_bytes() for path in sorted((CORPUS / name).iterdir()))]
    assert {bounded(TARGETS[name], data) for data in inputs} == {True, False}, "some are taken, and not all"


def test_the_corpus_is_small_and_each_of_its_folders_has_a_target():
    files = [path for path in CORPUS.rglob("*") if path.is_file()]
    assert {path.parent.name for path in files} == set(TARGETS)
    assert len(files) <= MOST_FILES
    assert sum(path.stat().st_size for path in files) <= MOST_BYTES
