"""The test vectors on phones: all of them pass, no change of one goes unnoticed, and a device keeps its promises."""

import json
import subprocess

import pytest
from vector_files import FILES, FOLDER, changes, counted, counted_words, with_a_change


def run(program, *arguments):
    return subprocess.run([*program, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False)


def test_a_client_passes_every_vector(program):
    done = run(program, "vectors", FOLDER)
    assert done.returncode == 0, done.stderr
    more = {"answers": len(FILES["answers"]["cases"]), "crowds": len(FILES["crowd"]["accepted"])}
    assert json.loads(done.stdout) == counted("fraction") | more | counted_words()


@changes
def test_a_client_notices_a_changed_vector(name, said, changed, tmp_path, program):
    assert run(program, "vectors", with_a_change(tmp_path, name, said, changed)).returncode != 0


@pytest.mark.parametrize(
    ("said", "changed"),
    [
        ('"wait": 21600', '"wait": 21601'),
        ('"left": ["campaign-closed"]', '"left": ["waits"]'),
        ('"split": true', '"split": false'),
        ('"kept": 604799', '"kept": 604801'),
        ('"given_up": 50401', '"given_up": 50399'),
    ],
)
def test_a_client_notices_another_meaning_of_an_answer(said, changed, tmp_path, program):
    assert run(program, "vectors", with_a_change(tmp_path, "answers", said, changed)).returncode != 0


def test_a_device_keeps_its_promises(program, tmp_path):
    done = run(program, "promises", FOLDER, tmp_path)
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    assert "a clock that jumps strands no report and throws none away" in told
    assert "a thousand devices lose nothing over a day of a wrong clock" in told


def test_without_a_csprng_nothing_is_drawn(client):
    done = run([*client.without_random_bytes, *client.command], "no-randomness")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "without a CSPRNG nothing is drawn\n"
