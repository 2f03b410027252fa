"""The test program in Swift, which ``make swift`` builds."""

from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "build" / "swift" / "checks"


@pytest.fixture(scope="session")
def swift():
    """The command of the test program; skips where it is not built."""
    if not PROGRAM.is_file():
        pytest.skip("build/swift is missing; make swift builds it")
    return [str(PROGRAM)]
