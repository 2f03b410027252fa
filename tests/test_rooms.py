"""The house rules that no linter knows: rooms that one can survey, files that one reads in one sitting, plain names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("protocols", "ldp_client", "ldp_aggregator", "simulations")
MOST_FILES = 14
MOST_LINES = 300
MOST_TEST_LINES = 400


def modules(*tops: str) -> Iterator[Path]:
    for top in tops:
        yield from sorted((ROOT / top).rglob("*.py"))


@pytest.mark.parametrize("top", [*PACKAGES, "tests"])
def test_a_folder_holds_about_a_dozen_modules(top):
    folders = {path.parent for path in modules(top)}
    crowded = {folder: len(list(folder.glob("*.py"))) for folder in folders}
    assert {str(folder): count for folder, count in crowded.items() if count > MOST_FILES + 4 * (top == "tests")} == {}


def test_a_file_is_read_in_one_sitting():
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in modules(*PACKAGES, "tests")}
    long = {
        str(path.relative_to(ROOT)): lines
        for path, lines in lengths.items()
        if lines > (MOST_TEST_LINES if path.is_relative_to(ROOT / "tests") else MOST_LINES)
    }
    assert long == {}


def test_no_module_is_named_like_a_function_that_it_holds():
    """Importing the one would hide the other."""
    found = [
        str(path.relative_to(ROOT))
        for path in modules(*PACKAGES)
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == path.stem
    ]
    assert found == []


def test_a_package_only_hands_names_on():
    """An ``__init__`` defines nothing but how names are found."""
    found = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path in modules(*PACKAGES)
        if path.name == "__init__.py" and path.parts[-2] != "command"
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and not node.name.startswith("__")
    ]
    assert found == []
