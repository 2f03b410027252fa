"""The table of the four clients, docs/site/clients.csv: each file is there, and defines what the table names."""

import csv
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs" / "site" / "clients.csv"
FOLDERS = {"Python": "", "npm": "", "Kotlin": "kotlin/src/main/kotlin/", "Swift": "swift/Sources/LdpBayes/"}
WORDS = r"def|class|const|function|interface|type|fun|val|object|func|struct|enum|protocol|let|var"
MOST_EMPTY = 10


def cells():
    """Concept, client, file and names of every place that is not empty."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        heads, *rows = csv.reader(file)
    assert heads[1:] == list(FOLDERS)
    for concept, *cells in rows:
        for client, cell in zip(FOLDERS, cells, strict=True):
            if cell:
                path, *names = cell.split()
                yield pytest.param(client, path, names, id=f"{concept}, {client}")


CELLS = list(cells())


def defined(name, text):
    """Whether a text defines a function, a type or a constant of this name, or a method."""
    words = rf"\b(?:{WORDS})\s+(?:\w+\.)?{name}\b"
    method = rf"^\s+{name}(?:<[^>]*>)?\(.*\{{$"
    constant = rf"^{name}(?::| =)"
    return re.search(words, text) or re.search(rf"{method}|{constant}", text, re.MULTILINE)


def test_all_rows_are_read_and_few_places_are_empty():
    concepts = {one.id.rpartition(", ")[0] for one in CELLS}
    assert len(concepts) > 30
    assert 4 * len(concepts) - len(CELLS) <= MOST_EMPTY


@pytest.mark.parametrize(("client", "file", "names"), CELLS)
def test_the_named_file_defines_what_is_named(client, file, names):
    text = (ROOT / f"{FOLDERS[client]}{file}").read_text(encoding="utf-8")
    assert names
    assert not [name for name in names if not defined(name, text)]


def test_a_name_that_a_file_only_uses_is_not_there():
    assert not defined("perturb", "from ldp_client.answering import perturb\nperturb(campaign)")
