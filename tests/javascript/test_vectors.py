"""The test vectors in Node: the modules and the bundled file pass all of them, and no change of one goes unnoticed."""

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "protocols" / "vectors"
FILES = ("documents.json", "reports.json", "uploads.json", "training.json", "values.json", "directories.json")
DOCUMENTS, REPORTS, UPLOADS, TRAINING, VALUES, DIRECTORIES = (
    json.loads((FOLDER / name).read_text(encoding="utf-8")) for name in FILES
)


def run(node, folder, module="index.js"):
    command = [node, ROOT / "javascript" / "test" / "check_vectors.mjs", folder, ROOT / "javascript" / "dist" / module]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def members(value):
    return value if isinstance(value, dict) else ()


@pytest.mark.parametrize("module", ["index.js", "ldp-bayes-client.min.js"])
def test_javascript_passes_every_vector(module, node):
    done = run(node, FOLDER, module)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "values": sum(not {"decimal", "fraction"} & set(members(case["value"])) for case in VALUES["cases"]),
        "documents": len(DOCUMENTS["accepted"]),
        "documents alike": len(DOCUMENTS["alike"]),
        "documents refused": len(DOCUMENTS["refused"]),
        "draws": len(REPORTS["draws"]),
        "reports": len(REPORTS["accepted"]),
        "records refused": len(REPORTS["refused"]),
        "uploads refused": len(UPLOADS["malformed"]),
        "reports refused": len(UPLOADS["impossible"]),
        "tallies": len(TRAINING["accepted"]),
        "predictions": sum(len(case["predictions"]) for case in TRAINING["accepted"]),
        "predictions of the impossible": len(TRAINING["impossible"]["predictions"]),
        "models refused": len(TRAINING["refused"]),
        "directories": len(DIRECTORIES["accepted"]),
        "directories refused": len(DIRECTORIES["refused"]),
    }


@pytest.mark.parametrize(
    ("name", "said", "changed"),
    [
        ("documents.json", '"loss-above-epsilon"', '"unknown-mechanism"'),
        ("reports.json", '"payload": "0', '"payload": "f'),
        ("uploads.json", "wrong-subset-size", "padding-bits-set"),
        ("values.json", '"text": "0.00000025"', '"text": "2.5e-7"'),
        ("training.json", '"class": "yes"', '"class": "no"'),
        ("directories.json", '"code": "wrong-signature"', '"code": "malformed-directory"'),
    ],
)
def test_javascript_notices_a_changed_vector(name, said, changed, tmp_path, node):
    for file in FILES:
        text = (FOLDER / file).read_text(encoding="utf-8")
        assert file != name or said in text
        (tmp_path / file).write_text(text.replace(said, changed, 1) if file == name else text, encoding="utf-8")
    assert run(node, tmp_path).returncode != 0
