#!/usr/bin/env python3
"""Builds the Swift client as a library, and its test program, in build/swift; fetches the toolchain once.

    python swift/build.py

Ends with 3 where there is no toolchain to be had; toolchain.py has the reasons.
"""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import toolchain

SWIFT = Path(__file__).resolve().parent
BUILT = toolchain.ROOT / "build" / "swift"
INSIDE = Path("/repository")
# The test program reads internals.
PACKAGE = ["swift", "build", "-c", "release", "-Xswiftc", "-enable-testing"]
LIBRARY = ["swiftc", "-O", "-wmo", "-parse-as-library", "-emit-library", "-module-name", "LdpBayes"]
LIBRARY += ["-swift-version", "6"]
# What an app writes, in both of the language's modes.
SAMPLE = ["swiftc", "-typecheck", "-warnings-as-errors", "-parse-as-library"]


def run(*command: str) -> None:
    subprocess.run(toolchain.inside(*command), check=True)


def build() -> None:
    BUILT.mkdir(parents=True, exist_ok=True)
    sources = [
        str(INSIDE / path.relative_to(toolchain.ROOT)) for path in sorted(SWIFT.glob("Sources/LdpBayes/*.swift"))
    ]
    folder = INSIDE / BUILT.relative_to(toolchain.ROOT)
    run(*PACKAGE, "--package-path", str(INSIDE), "--scratch-path", str(folder))
    run(*LIBRARY, "-o", str(folder / "libLdpBayes.so"), *sources)
    modules, sample = folder / "release" / "Modules", INSIDE / "swift" / "examples" / "App.swift"
    for mode in ("5", "6"):
        run(*SAMPLE, "-swift-version", mode, "-I", str(modules), str(sample))
    run("strip", "--strip-all", str(folder / "libLdpBayes.so"))
    program = BUILT / "checks"
    command = shlex.join(toolchain.outside(BUILT / "release" / "Program"))
    program.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    library = BUILT / "libLdpBayes.so"
    print(f"{library.relative_to(toolchain.ROOT)}: {library.stat().st_size:,} bytes")


def main() -> None:
    toolchain.fetch()
    toolchain.check()
    build()


if __name__ == "__main__":
    main()
