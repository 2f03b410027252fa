"""A newcomer finds what the pages name: paths exist, the README has every top-level folder, tests mirror packages."""

import re
from pathlib import Path

import pytest
from installing import REPOSITORY
from places import FILES, FOLDERS, PACKAGES, mirrored

PAGES = sorted(name for name in FILES if name.endswith(".md"))
TOPS = sorted({name.partition("/")[0] for name in FILES if "/" in name} - {".ci"})

NAMED = re.compile(r"`(?:\.\./)?((?:[\w.-]+/)+[\w.-]*)`")
"""A path in a page: words with slashes between back-ticks."""
MADE = ("build/", "dist/", ".venv/", "node_modules/", "tests/releases")
"""What a build or the first release makes is in no checkout."""
OLD = re.compile(
    r"python3? -m (?:simulations|ldp_client(?!\.)|ldp_aggregator|ldp_simulations)\b"
    r"|(?:from|import) (?:protocols|simulations)\b|\b(?<![\w/.-])(?:protocols|simulations)\.(?!md\b)[a-z_]\w*"
)


def named_paths() -> list[tuple[str, str, set[str]]]:
    """Every page, a path that it names, and the folders in which its reader would look for it."""
    found = []
    for page in PAGES:
        for path in NAMED.findall((REPOSITORY / page).read_text(encoding="utf-8")):
            first = path.partition("/")[0]
            roots = {"", *(f"{parent}/" for parent in Path(page).parents if str(parent) != ".")}
            if page == "CONTRIBUTING.md":
                roots |= {"tests/", "tests/ldp_aggregator/"}
            if path.startswith(MADE) or not (path.endswith(".py") or any(root + first in FOLDERS for root in roots)):
                continue
            found.append((page, path.rstrip("/"), roots))
    return found


def test_every_path_that_a_page_names_exists():
    assert len(named_paths()) > 60
    missing = [
        (page, path)
        for page, path, roots in named_paths()
        if not any(root + path in FILES or root + path in FOLDERS for root in roots)
    ]
    assert missing == []


def test_the_readme_says_what_every_top_level_folder_is():
    listed = (REPOSITORY / "README.md").read_text(encoding="utf-8").partition("## Where things are")[2]
    assert [name for name in TOPS if f"{name}/" not in listed] == []


@pytest.mark.parametrize(
    "name", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "Makefile", "docs", "examples", "deploy"]
)
def test_no_page_example_or_help_names_a_module_where_there_is_a_command(name):
    for file in sorted(FILES):
        if file == name or file.startswith(f"{name}/"):
            try:
                text = (REPOSITORY / file).read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
            assert OLD.findall(text) == [], file


WHOLE = {
    "ldp_aggregator/cli/test_deployment.py": "the samples of deploy/ and the guide's commands",
    "ldp_aggregator/mechanisms/test_toy_mechanism.py": "a mechanism that is added from outside, through every package",
    "ldp_aggregator/system/test_crashes.py": "servers as processes, killed",
    "ldp_aggregator/system/test_discretion.py": "servers as processes, and what they write down",
    "ldp_aggregator/system/test_model.py": "servers as processes, against a model",
    "ldp_aggregator/system/test_nginx.py": "the sample for nginx, in front of a server",
    "ldp_aggregator/system/test_strangers.py": "servers as processes, held by strangers",
    "ldp_aggregator/test_stored_figures.py": "counting, estimating and learning together",
    "ldp_aggregator/test_thin.py": "the server without the libraries that train",
    "ldp_aggregator/trainers/test_round_trips.py": "every estimator there is",
    "ldp_aggregator/trainers/test_rows.py": "every trainer's statistics",
    "ldp_client/test_footprint.py": "the import of the package",
    "ldp_client/test_guide.py": "docs/client.md",
    "ldp_protocols/test_vectors.py": "protocols/vectors",
}
"""Tests below a package's folder that are of no single module or folder, each with what it is of."""


def test_every_test_below_a_package_is_named_after_the_module_or_folder_that_it_mirrors():
    tests = {
        file.removeprefix("tests/")
        for file in FILES
        if file.startswith(tuple(f"tests/{package}/" for package in PACKAGES)) and Path(file).name.startswith("test_")
    }
    assert len(tests) > 150
    assert sorted(test for test in tests - WHOLE.keys() if mirrored(test) is None) == []
    assert sorted(WHOLE.keys() - tests) == []
