"""A newcomer finds what the pages name: paths exist, the README has every top-level folder, tests mirror packages."""

import re
import subprocess
from pathlib import Path

import pytest
from installing import REPOSITORY

TRACKED = subprocess.run(
    ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
    cwd=REPOSITORY,
    capture_output=True,
    text=True,
    check=True,
).stdout.split("\n")
FILES = {name for name in TRACKED if (REPOSITORY / name).is_file()}
FOLDERS = {str(parent) for name in FILES for parent in Path(name).parents} - {"."}
PAGES = sorted(name for name in FILES if name.endswith(".md"))
TOPS = sorted({name.partition("/")[0] for name in FILES if "/" in name} - {".ci"})

NAMED = re.compile(r"`(?:\.\./)?((?:[\w.-]+/)+[\w.-]*)`")
"""A path in a page: words with slashes between back-ticks."""
MADE = ("build/", "dist/", ".venv/", "node_modules/", "tests/releases")
"""What a build or the first release makes is in no checkout."""
PACKAGES = {"ldp_client": "", "ldp_aggregator": "", "ldp_protocols": "protocols/", "ldp_simulations": "simulations/"}
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
