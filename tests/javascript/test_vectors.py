"""The test vectors in Node: the modules and the bundled file pass all of them, and no change of one goes unnoticed."""

import json
import subprocess
from pathlib import Path

import pytest
from vector_files import FOLDER, changes, counted, counted_crowds, counted_words, with_a_change

JAVASCRIPT = Path(__file__).resolve().parents[2] / "javascript"


def run(node, folder, module="core.js"):
    command = [node, JAVASCRIPT / "test" / "check_vectors.mjs", folder, JAVASCRIPT / "dist" / module]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("module", ["core.js", "ldp-bayes-client.min.js"])
def test_javascript_passes_every_vector(module, node):
    done = run(node, FOLDER, module)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == counted("decimal", "fraction") | counted_words() | counted_crowds()


@changes
def test_javascript_notices_a_changed_vector(name, said, changed, tmp_path, node):
    assert run(node, with_a_change(tmp_path, name, said, changed)).returncode != 0


@pytest.mark.parametrize(
    ("file", "said", "changed"),
    [
        ("words", "an unknown day", "a known day"),
        ("words", "3 of 12 answers", "8 of 12 answers"),
        ("words", '"others": 36', '"others": 37'),
        ("words", "0.14", "0.15"),
        ("crowd", '"code": "crowd-above-promise"', '"code": "invalid-document"'),
        ("crowd", '"code": "crowd-above-cap"', '"code": null'),
        ("crowd", '"crowd_odds": "2.7"', '"crowd_odds": "2.8"'),
        ("crowd", "1 where relay and aggregator", "2 where relay and aggregator"),
    ],
)
def test_javascript_notices_another_word(file, said, changed, tmp_path, node):
    assert run(node, with_a_change(tmp_path, file, said, changed)).returncode != 0
