"""Every engine gives the bytes of every other one. 'make engines' has an environment with all of them."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from archived import random_kept

from ldp_aggregator.archive.locations import Reports, open_place
from ldp_aggregator.archive.recount import SlotWork, on_dask, on_processes, parts_of, read_result, recount
from ldp_aggregator.archive.writer import Archive
from ldp_aggregator.store import Submission
from ldp_protocols.wire import Block


@pytest.fixture
def engine():
    pytest.importorskip("dask", reason="'make engines' has an environment with every engine")
    return on_dask


def run(*words):
    return subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, check=False)


def _archived(campaign, folder):
    """Three commits, one of which repeats a part of another, and one conflict."""
    first, second = random_kept(campaign, 400, 1), random_kept(campaign, 400, 2)
    again = {
        1: Reports(first[1].ids[:9], first[1].payloads[:9]),
        2: Reports(first[1].ids[20:21], first[2].payloads[:1]),
    }
    for kept in (first, second, again):
        archive = Archive(open_place(str(folder)))
        blocks = [Block(number, one.ids.tobytes(), one.payloads.tobytes()) for number, one in kept.items()]
        archive.publish(archive.write([Submission(campaign, tuple(blocks))]))
    place = open_place(str(folder))
    return [SlotWork(place.url, campaign.document, names) for names in parts_of(place, campaign.id)]


def test_the_same_bytes_as_on_processes(campaign, engine, tmp_path):
    work = _archived(campaign, tmp_path)
    result = engine(campaign.document, work)
    assert result == on_processes(campaign.document, work, workers=1) == engine(campaign.document, work[::-1])
    found = read_result(campaign.document, result)
    assert (found.duplicates, len(found.conflicts)) == (9, 1)
    assert found.reports == 2 * 400 - 1


ONE_CAMPAIGN = pytest.mark.parametrize("campaign", [("oue", "laplace")], indirect=True)


@ONE_CAMPAIGN
@pytest.mark.parametrize(
    ("example", "library"),
    [("recount_on_beam", "apache_beam"), ("recount_on_spark", "pyspark"), ("recount_on_ray", "ray")],
)
def test_the_examples_count_what_processes_count(campaign, example, library, tmp_path):
    """Where they are installed: some take a Java runtime and a gigabyte."""
    pytest.importorskip(library, reason=f"{library} is not installed")
    _archived(campaign, tmp_path)
    found = recount(str(tmp_path), campaign.id)
    program = Path(__file__).parents[2] / "examples" / f"{example}.py"
    done = run(program, tmp_path, campaign.id)
    assert done.returncode == 0, done.stderr
    told = f"{found.reports} reports count, {found.duplicates} repeat one, {len(found.conflicts)} ids are in conflict"
    assert told in done.stdout


def test_an_archive_of_nothing_is_nothing(campaign, engine):
    assert engine(campaign.document, []) == on_processes(campaign.document, [])


def test_a_damaged_file_ends_the_run_with_its_name(campaign, engine, tmp_path):
    work = _archived(campaign, tmp_path)
    (tmp_path / work[0].names[0]).write_bytes(b"not a file of reports")
    with pytest.raises(Exception, match=Path(work[0].names[0]).name):
        engine(campaign.document, work)


@ONE_CAMPAIGN
def test_the_command_runs_on_it_and_says_so_where_it_is_not_installed(campaign, tmp_path):
    _archived(campaign, tmp_path)
    done = run("-m", "ldp_aggregator", "fsck", campaign.id, "--archive", tmp_path, "--engine", "dask", "--count-only")
    if find_spec("dask") is None:
        assert done.returncode == 2
        assert "pip install 'ldp-bayes[dask]'" in done.stderr
    else:
        assert done.returncode == 0, done.stderr
        assert "1 ids have more than one answer" in done.stdout
