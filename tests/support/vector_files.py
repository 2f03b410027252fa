"""The test vectors as the clients in other languages are held to them: how many of each kind, and changes to notice."""

import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "protocols" / "vectors"
FILES = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.json")}

changes = pytest.mark.parametrize(
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
"""One vector of each file, and another word for what it says."""


def counted(*unknown):
    """What a client says that it has passed; ``unknown`` are kinds of numbers that its language has not."""
    documents, reports, uploads = FILES["documents"], FILES["reports"], FILES["uploads"]
    training, directories, values = FILES["training"], FILES["directories"], FILES["values"]["cases"]
    written = [case["value"] if isinstance(case["value"], dict) else {} for case in values]
    return {
        "values": sum(not set(unknown) & value.keys() for value in written),
        "documents": len(documents["accepted"]),
        "documents alike": len(documents["alike"]),
        "documents refused": len(documents["refused"]),
        "draws": len(reports["draws"]),
        "reports": len(reports["accepted"]),
        "records refused": len(reports["refused"]),
        "uploads refused": len(uploads["malformed"]),
        "reports refused": len(uploads["impossible"]),
        "tallies": len(training["accepted"]),
        "predictions": sum(len(case["predictions"]) for case in training["accepted"]),
        "predictions of the impossible": len(training["impossible"]["predictions"]),
        "models refused": len(training["refused"]),
        "directories": len(directories["accepted"]),
        "directories refused": len(directories["refused"]),
    }


def with_a_change(folder, name, said, changed):
    """The folder, with all vectors in it of which one is another."""
    for file in FILES:
        text = (FOLDER / f"{file}.json").read_text(encoding="utf-8")
        assert file != name or said in text
        written = text.replace(said, changed, 1) if file == name else text
        (folder / f"{file}.json").write_text(written, encoding="utf-8")
    return folder


def counted_crowds():
    """What a client that recomputes the bound says that it has passed of crowds."""
    crowd = FILES["crowd"]
    return {
        "crowds": len(crowd["accepted"]),
        "crowds refused": len(crowd["refused"]),
        "crowds capped": sum(case["code"] != "total-above-cap" for case in crowd["caps"]),
        "crowds explained": len(crowd["explained"]),
        "ledgers of crowds": len(crowd["ledgers"]),
    }


def counted_words():
    """What a client says that it has passed of what people are told."""
    return {name: len(cases) for name, cases in FILES["words"].items()}
