"""The checkout's files, and the module or folder that each test is named after."""

import subprocess
from pathlib import Path

from installing import REPOSITORY

PACKAGES = {"ldp_client": "", "ldp_aggregator": "", "ldp_protocols": "protocols/", "ldp_simulations": "simulations/"}
"""The folder in which each package lies."""


def checked_out() -> list[str]:
    """Every file that git has or would take, as paths in the checkout."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    return sorted({name for name in listed.split("\0") if (REPOSITORY / name).is_file()})


FILES = frozenset(checked_out())
FOLDERS = frozenset(str(parent) for name in FILES for parent in Path(name).parents) - {"."}


def mirrored(test: str) -> str | None:
    """The module or folder that a test below ``tests`` is named after: ``test_x.py`` and ``test_x_subject.py`` are of
    ``x`` in the folder that mirrors theirs, or of that folder.
    """
    folder, _, name = test.rpartition("/")
    words = name.removeprefix("test_").removesuffix(".py").split("_")
    package = folder.partition("/")[0]
    place = PACKAGES[package] + folder
    for length in range(len(words), 0, -1):
        named = "_".join(words[:length])
        if f"{place}/{named}.py" in FILES or f"{place}/{named}" in FOLDERS:
            return f"{place}/{named}"
        if place in FOLDERS and f"/{place}".endswith(f"/{named}"):
            return place
    return None
