#!/usr/bin/env python3
"""The Swift compiler of Debian 13, in a folder beside whatever this machine is: nothing of the machine is changed.

    python swift/toolchain.py COMMAND ...

runs a command of the toolchain, such as `swift build --package-path /repository`, with the repository at /repository;
`lint` and `format` run swift-format on every file. The packages come from the mirror that the machine's own apt is set
to, signed by Debian, with the hashes in its index, into .venv/swift, once. Ends with 3 where they cannot be had, or
cannot be run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".venv" / "swift"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SUITE = "trixie"
PACKAGES = ["swiftlang", "libc6-dev", "libstdc++-14-dev"]
UNAVAILABLE = 3

# The machine's lists, caches and settings are not looked at, but for how it reaches a mirror.
SETTINGS = """
Dir::Etc::SourceList "/dev/null";
Dir::Etc::SourceParts "{folder}/sources";
Dir::State "{folder}";
Dir::State::Status "{folder}/status";
Dir::Cache "{folder}/cache";
APT::Architecture "amd64";
APT::Install-Recommends "false";
APT::Sandbox::User "";
Acquire::Languages "none";
"""
SOURCE = "Types: deb\nURIs: {mirror}\nSuites: {suite}\nComponents: main\nSigned-By: {keyring}\n"

# A mount namespace of its own: the toolchain finds everything where Debian 13 has it, and nobody else sees that.
ENTER = """
mount --rbind /proc "$1/proc" && mount --rbind /dev "$1/dev" && mount --bind "$2" "$1/repository" || exit 3
root=$1; shift 2
exec env -i PATH=/usr/libexec/swift/bin:/usr/bin HOME=/tmp "$(command -v chroot)" "$root" "$@"
"""


def unavailable(sentence: str) -> SystemExit:
    print(sentence, file=sys.stderr)
    return SystemExit(UNAVAILABLE)


def fetch() -> None:
    """Have the toolchain in its folder, under its name only when it is whole."""
    if CACHE.is_dir():
        return
    if os.uname().machine != "x86_64" or not (shutil.which("apt-get") and KEYRING.is_file()):
        raise unavailable("Swift cannot be had: it is taken from Debian's packages, by apt on a Debian of 64-bit PCs.")
    folder, part = CACHE.with_name("swift.apt"), CACHE.with_name("swift.part")
    for left in (folder, part):
        shutil.rmtree(left, ignore_errors=True)
    for needed in ("sources", "lists/partial", "cache/archives/partial"):
        (folder / needed).mkdir(parents=True)
    (folder / "status").touch()
    (folder / "settings").write_text(SETTINGS.format(folder=folder), encoding="utf-8")
    apt = {**os.environ, "APT_CONFIG": str(folder / "settings")}
    if not any(update(folder, mirror, apt) for mirror in mirrors()):
        raise unavailable(f"Swift cannot be had: no mirror that this machine's apt is set to has Debian's {SUITE}.")
    command = ["apt-get", "install", "-qq", "--yes", "--download-only", *PACKAGES]
    if subprocess.run(command, env=apt, stdout=subprocess.DEVNULL, check=False).returncode:
        raise unavailable("Swift cannot be had: the mirror did not give all of its packages.")
    for package in sorted((folder / "cache" / "archives").glob("*.deb")):
        subprocess.run(["dpkg-deb", "--extract", package, part], check=True)
    for name in ("bin", "lib", "lib64"):
        (part / name).symlink_to(f"usr/{name}")
    for name in ("dev", "proc", "tmp", "repository"):
        (part / name).mkdir(exist_ok=True)
    shutil.rmtree(folder)
    part.rename(CACHE)


def mirrors() -> list[str]:
    """Return where the machine takes its own packages from, in the order of its settings."""
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)"], capture_output=True, text=True, check=False
    )
    return list(dict.fromkeys(listed.stdout.split()))


def update(folder: Path, mirror: str, apt: dict[str, str]) -> bool:
    """Tell whether a mirror has the suite, signed by Debian; its index is then there."""
    source = SOURCE.format(mirror=mirror, suite=SUITE, keyring=KEYRING)
    (folder / "sources" / "debian.sources").write_text(source, encoding="utf-8")
    command = ["apt-get", "update", "-qq", "--error-on=any"]
    return subprocess.run(command, env=apt, stderr=subprocess.DEVNULL, check=False).returncode == 0


def inside(*command: str) -> list[str]:
    """Return the command line that runs a command of the toolchain, with the repository at /repository."""
    shell = ["sh", "-c", ENTER, "toolchain", str(CACHE), str(ROOT), *command]
    return ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"]), *shell]


def outside(program: Path) -> list[str]:
    """Return the command line that runs a program it built as any other, with the toolchain's libraries."""
    of_swift = CACHE / "usr/libexec/swift/lib/swift"
    libraries = [CACHE / "usr/lib/x86_64-linux-gnu", of_swift / "linux", of_swift / "host"]
    loader = CACHE / "usr/lib64/ld-linux-x86-64.so.2"
    return [str(loader), "--library-path", os.pathsep.join(map(str, libraries)), str(program)]


def formatter(*arguments: str) -> list[str]:
    """Return the command line of swift-format on every Swift file here; it takes no path from a root of its own."""
    files = [ROOT / "Package.swift", *sorted((ROOT / "swift").rglob("*.swift"))]
    settings = ["--configuration", str(ROOT / "swift" / ".swift-format")]
    return [*outside(CACHE / "usr/libexec/swift/bin/swift-format"), *arguments, *settings, *map(str, files)]


def check() -> None:
    """End with 3 where no process may have a root of its own."""
    if subprocess.run(inside("swiftc", "--version"), capture_output=True, check=False).returncode:
        raise unavailable("Swift cannot be run: it needs a mount namespace, as root or where users may have their own.")


def main() -> None:
    fetch()
    check()
    formats = {"lint": ["lint", "--strict"], "format": ["format", "--in-place"]}
    asked = sys.argv[1:]
    command = formatter(*formats[asked[0]]) if len(asked) == 1 and asked[0] in formats else inside(*asked)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
