#!/usr/bin/env python3
"""Builds the Kotlin client as a plain jar, with its sources, its testing kit and its test programs, in build/kotlin.

    python kotlin/build.py [check]

With `check` it then runs every vector, the promises of a device and an app in Java, and compiles what docs/client.md
shows in Kotlin. Ends with 3 where there is no JDK,
or no compiler to be had; toolchain.py has the reasons.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from toolchain import KOTLIN, ROOT, compiler, java

SOURCES = KOTLIN / "src"
BUILT = ROOT / "build" / "kotlin"
COMPILER = "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler"
# Bytecode that Android takes, metadata that compilers from 2.2 on read, and the names of parameters for Java's tools.
OPTIONS = ["-no-stdlib", "-no-reflect", "-jvm-target", "1.8", "-language-version", "2.2", "-api-version", "2.2"]
OPTIONS += ["-java-parameters", "-Werror"]


PAGE = ROOT / "docs" / "client.md"
# What a block of the page takes from the app around it.
AROUND = """
import java.io.File
import org.example.ldpbayes.*
const val KEY = "key"
object context { val noBackupFilesDir = File("files") }
"""
APP = "device: Device, campaign: DeviceCampaign, url: String, id: String, agrees: (Campaign) -> Boolean"


def compile_with(all_of_it: Path) -> list[str]:
    """The compiler's command. C1 alone is twice as fast: it does not live long enough for more."""
    machine = [java(), "-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=200m"]
    return [*machine, "-cp", str(all_of_it), COMPILER, *OPTIONS]


def build() -> None:
    all_of_it, library = compiler()
    BUILT.mkdir(parents=True, exist_ok=True)
    stdlib = BUILT / "kotlin-stdlib.jar"
    shutil.copy(library, stdlib)
    compile_ = compile_with(all_of_it)

    def jar(name: str, sources: str, *before: Path, friend: bool = False) -> Path:
        made = BUILT / f"{name}.jar"
        friends = [f"-Xfriend-paths={before[0]}"] if friend else []
        path = os.pathsep.join(map(str, (stdlib, *before)))
        options = [*friends, "-module-name", name, "-cp", path, "-d", str(made)]
        subprocess.run([*compile_, *options, str(SOURCES / sources)], check=True)
        return made

    client = jar("ldp-bayes-client", "main")
    testing = jar("ldp-bayes-client-testing", "testing", client)
    jar("tests", "test/kotlin", client, testing, friend=True)
    path = os.pathsep.join(map(str, (stdlib, client, testing)))
    programs = map(str, (SOURCES / "test" / "java").glob("*.java"))
    options = ["--release", "8", "-Xlint:all", "-Werror", "-Xlint:-options", "-Xlint:-classfile", "-cp", path]
    subprocess.run([java("javac"), *options, "-d", str(BUILT / "java"), *programs], check=True)
    with zipfile.ZipFile(BUILT / "ldp-bayes-client-sources.jar", "w", zipfile.ZIP_DEFLATED) as archive:
        for source in sorted((SOURCES / "main" / "kotlin").glob("*.kt")):
            archive.write(source, f"org/example/ldpbayes/{source.name}")
    print(f"{client.relative_to(ROOT)}: {client.stat().st_size:,} bytes")


def check() -> None:
    """Run what needs nothing but the programs. A test that fails ends this, with its sentence."""
    vectors = ROOT / "protocols" / "vectors"
    cases = json.loads((vectors / "documents.json").read_text(encoding="utf-8"))["accepted"]
    (text,) = [case["document"] for case in cases if case["name"] == "de-onebit"]
    command = [java(), "-cp", os.pathsep.join(map(str, [*BUILT.glob("*.jar"), BUILT / "java"]))]
    with tempfile.TemporaryDirectory() as folder:
        document = Path(folder) / "document.json"
        document.write_text(text, encoding="utf-8")
        for arguments in (["vectors", vectors], ["promises", vectors, folder]):
            subprocess.run([*command, "org.example.ldpbayes.MainKt", *arguments], check=True)
        subprocess.run([*command, "FromJava", document, Path(folder) / "java"], check=True)


def check_page() -> None:
    """Compile the page's blocks, each in a function of its own, but for those that need Android."""
    blocks = re.findall(r"<!-- (not run: it is Kotlin.*?) -->\n *```kotlin\n(.*?) *```", PAGE.read_text("utf-8"), re.S)
    functions = [f"suspend fun block{place}({APP}) {{\n{text}}}\n" for place, (_, text) in enumerate(blocks)]
    if len(functions) < 4:
        sys.exit(f"{PAGE.name} has {len(functions)} blocks in Kotlin that compile; at least 4 were there")
    options = [option for option in compile_with(compiler()[0]) if option != "-Werror"]  # Their names shadow the app's.
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "page.kt"
        source.write_text(AROUND + "".join(functions), encoding="utf-8")
        path = os.pathsep.join(map(str, (BUILT / "kotlin-stdlib.jar", BUILT / "ldp-bayes-client.jar")))
        subprocess.run([*options, "-nowarn", "-cp", path, "-d", folder, str(source)], check=True)


def main() -> None:
    build()
    if sys.argv[1:] == ["check"]:
        check()
        check_page()


if __name__ == "__main__":
    main()
