"""The test programs of the clients for phones, and what ``make kotlin`` and ``make swift`` build."""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KOTLIN, SWIFT = ROOT / "build" / "kotlin", ROOT / "build" / "swift"
JARS = [KOTLIN / name for name in ("ldp-bayes-client.jar", "tests.jar", "kotlin-stdlib.jar")]
QUICK_START = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
WITHOUT_RANDOM_BYTES = [sys.executable, str(ROOT / "tests" / "support" / "no_random_bytes.py")]


@dataclass(frozen=True)
class Program:
    """The test program of a client in one language."""

    command: list[str]
    built: bool
    without_random_bytes: list[str]
    """Runs a command whose system gives no random bytes; a program that takes its own away needs nothing."""


def programs() -> dict[str, Program]:
    java = shutil.which("java") or "java"
    kotlin = [java, *QUICK_START, "-cp", os.pathsep.join(map(str, JARS)), "ldpbayes.MainKt"]
    swift = SWIFT / "checks"
    return {
        "kotlin": Program(kotlin, Path(java).is_file() and all(jar.is_file() for jar in JARS), []),
        "swift": Program([str(swift)], swift.is_file(), WITHOUT_RANDOM_BYTES),
    }


def built(language: str) -> Program:
    """Skip where it is not built."""
    program = programs()[language]
    if not program.built:
        pytest.skip(f"build/{language} is missing, or what runs it; make {language} builds it")
    return program


@pytest.fixture(scope="session", params=["kotlin", "swift"])
def client(request):
    return built(request.param)


@pytest.fixture(scope="session")
def program(client):
    """The command of the test program of each language."""
    return client.command
