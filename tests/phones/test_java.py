"""The Kotlin client as a Java app calls it: ``kotlin/src/test/java``, which javac has compiled."""

import json
import subprocess

from phone_programs import java_app
from vector_files import FOLDER


def test_an_app_in_java_asks_answers_and_delivers_by_the_kotlin_client(tmp_path):
    cases = json.loads((FOLDER / "documents.json").read_text(encoding="utf-8"))["accepted"]
    (text,) = [case["document"] for case in cases if case["name"] == "de-onebit"]
    document = tmp_path / "document.json"
    document.write_text(text, encoding="utf-8")
    command = [*java_app(), document, tmp_path / "device"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["answered true", "answered true", "2"]
