"""The table of the four clients in docs/how-to/port.md: each file is there, and defines what the table names."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-to" / "port.md"
FOLDERS = {"Python": "", "npm": "", "Kotlin": "kotlin/src/main/kotlin/", "Swift": "swift/Sources/LdpBayes/"}
WORDS = r"def|class|const|function|interface|type|fun|val|object|func|struct|enum|protocol|let|var"
MOST_EMPTY = 10


def cells():
    """Concept, client, file and names of every place that is not empty."""
    rows = re.findall(r"^\| ([a-z].*?) \|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    for concept, rest in rows:
        for client, cell in zip(FOLDERS, rest.split("|"), strict=True):
            if names := re.findall(r"`([^`]+)`", cell):
                yield pytest.param(client, *names[:1], names[1:], id=f"{concept}, {client}")


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
