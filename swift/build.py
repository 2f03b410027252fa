#!/usr/bin/env python3
"""Builds the Swift client as a library, and its test program, in build/swift; fetches the toolchain once.

    python swift/build.py

Ends with 3 where there is no toolchain to be had; toolchain.py has the reasons.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
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
PAGE = toolchain.ROOT / "docs" / "client.md"
# What a block of the page takes from the app around it.
AROUND = """import Foundation
import LdpBayes
let KEY = "key"
func agrees(to campaign: Campaign) -> Bool { true }
"""
APP = "device: Device, campaign: DeviceCampaign, url: String, id: String, support: URL"


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


def check_page() -> None:
    """Typecheck what the page shows, each block in a function of its own, but for those that need Apple's platforms."""
    blocks = re.findall(r"<!-- (not run: it is Swift.*?) -->\n *```swift\n(.*?) *```", PAGE.read_text("utf-8"), re.S)
    functions = [f"func block{place}({APP}) async throws {{\n{text}}}\n" for place, (_, text) in enumerate(blocks)]
    if len(functions) < 4:
        sys.exit(f"{PAGE.name} has {len(functions)} blocks in Swift that compile; at least 4 were there")
    source, folder = BUILT / "page.swift", INSIDE / BUILT.relative_to(toolchain.ROOT)
    source.write_text(AROUND + "".join(functions), encoding="utf-8")
    for mode in ("5", "6"):
        options = ["-swift-version", mode, "-I", str(folder / "release" / "Modules")]
        run("swiftc", "-typecheck", "-parse-as-library", *options, str(folder / source.name))


def main() -> None:
    toolchain.fetch()
    toolchain.check()
    build()
    check_page()


if __name__ == "__main__":
    main()
