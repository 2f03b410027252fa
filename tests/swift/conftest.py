"""The test program in Swift, which ``make swift`` builds."""

import os
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "build" / "swift" / "checks"


@pytest.fixture(scope="session")
def swift():
    """The command of the test program; skips where it is not built, except where it must be."""
    if not PROGRAM.is_file():
        told = "build/swift is missing; make swift builds it"
        pytest.fail(told) if "LDP_BAYES_SWIFT" in os.environ else pytest.skip(told)
    return [str(PROGRAM)]
