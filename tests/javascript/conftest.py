"""Node, and what ``make javascript`` builds."""

import shutil
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "javascript"


@pytest.fixture(scope="session")
def node():
    """The command; skips where Node or the built package is missing."""
    found = shutil.which("node")
    if found is not None and (FOLDER / "dist" / "index.js").is_file():
        return found
    pytest.skip("node or javascript/dist is missing; make javascript builds it")
