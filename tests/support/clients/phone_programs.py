"""The test programs of the clients for phones, as ``make kotlin`` and ``make swift`` build them."""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
KOTLIN, SWIFT = ROOT / "build" / "kotlin", ROOT / "build" / "swift"
JARS = [KOTLIN / f"{name}.jar" for name in ("ldp-bayes-client", "ldp-bayes-client-testing", "tests", "kotlin-stdlib")]
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
    kotlin = [java, *QUICK_START, "-cp", os.pathsep.join(map(str, JARS)), "org.example.ldpbayes.MainKt"]
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


def java_app() -> list[str]:
    """Return the command of an app in Java that uses the Kotlin client."""
    built("kotlin")
    return ["java", *QUICK_START, "-cp", os.pathsep.join(map(str, [KOTLIN / "java", *JARS])), "FromJava"]
