"""Java, and what ``make kotlin`` builds."""

import os
import shutil
from pathlib import Path

import pytest

BUILT = Path(__file__).resolve().parents[2] / "build" / "kotlin"
JARS = [BUILT / name for name in ("ldp-bayes-client.jar", "tests.jar", "kotlin-stdlib.jar")]
QUICK_START = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]


@pytest.fixture(scope="session")
def program():
    """The command of the test program; skips where Java or the built jar is missing, except where they must not be."""
    java = shutil.which("java")
    if java is not None and all(jar.is_file() for jar in JARS):
        return [java, *QUICK_START, "-cp", os.pathsep.join(map(str, JARS)), "ldpbayes.MainKt"]
    if "LDP_BAYES_KOTLIN" in os.environ:
        pytest.fail("java or build/kotlin is missing; make kotlin")
    pytest.skip("java or build/kotlin is missing; make kotlin builds it")
