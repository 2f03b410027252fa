"""The test vectors on phones: all of them pass, no change of one goes unnoticed, and a device keeps its promises."""

import json
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "protocols" / "vectors"
FILES = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.json")}


def run(program, *arguments):
    return subprocess.run([*program, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False)


def members(value):
    return value if isinstance(value, dict) else ()


def test_a_client_passes_every_vector(program):
    done = run(program, "vectors", FOLDER)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "values": sum("fraction" not in members(case["value"]) for case in FILES["values"]["cases"]),
        "documents": len(FILES["documents"]["accepted"]),
        "documents alike": len(FILES["documents"]["alike"]),
        "documents refused": len(FILES["documents"]["refused"]),
        "draws": len(FILES["reports"]["draws"]),
        "reports": len(FILES["reports"]["accepted"]),
        "records refused": len(FILES["reports"]["refused"]),
        "uploads refused": len(FILES["uploads"]["malformed"]),
        "reports refused": len(FILES["uploads"]["impossible"]),
        "tallies": len(FILES["training"]["accepted"]),
        "predictions": sum(len(case["predictions"]) for case in FILES["training"]["accepted"]),
        "predictions of the impossible": len(FILES["training"]["impossible"]["predictions"]),
        "models refused": len(FILES["training"]["refused"]),
        "directories": len(FILES["directories"]["accepted"]),
        "directories refused": len(FILES["directories"]["refused"]),
    }


@pytest.mark.parametrize(
    ("name", "said", "changed"),
    [
        ("documents", '"loss-above-epsilon"', '"unknown-mechanism"'),
        ("reports", '"payload": "0', '"payload": "f'),
        ("uploads", "wrong-subset-size", "padding-bits-set"),
        ("values", '"text": "0.00000025"', '"text": "2.5e-7"'),
        ("training", '"class": "yes"', '"class": "no"'),
        ("directories", '"code": "wrong-signature"', '"code": "malformed-directory"'),
    ],
)
def test_a_client_notices_a_changed_vector(name, said, changed, tmp_path, program):
    for file in FILES:
        text = (FOLDER / f"{file}.json").read_text(encoding="utf-8")
        assert file != name or said in text
        written = text.replace(said, changed, 1) if file == name else text
        (tmp_path / f"{file}.json").write_text(written, encoding="utf-8")
    assert run(program, "vectors", tmp_path).returncode != 0


def test_a_device_keeps_its_promises(program, tmp_path):
    done = run(program, "promises", FOLDER, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "a clock that jumps strands no report and throws none away" in done.stdout.splitlines()


def test_without_a_csprng_nothing_is_drawn(client):
    done = run([*client.without_random_bytes, *client.command], "no-randomness")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "without a CSPRNG nothing is drawn\n"
