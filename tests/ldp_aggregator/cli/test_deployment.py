"""The sample files and the commands of the deployment guide: each is read by the program it is for."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import yaml

from ldp_aggregator.cli.program import parse
from ldp_aggregator.issuer.__main__ import make_parser as make_issuer_parser
from ldp_aggregator.relay.__main__ import make_parser as make_relay_parser
from ldp_aggregator.server import apps
from ldp_aggregator.service.settings import Limits, Settings, read_settings, variables

ROOT = Path(__file__).resolve().parents[3]
COMMIT_SECONDS = 10
"""For the last commits, beyond the times to drain and to pause: docs/deployment.md says so."""
PAGES = (ROOT / "docs" / "deployment.md", *sorted((ROOT / "docs" / "deployment").glob("*.md")))
GUIDE = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
SYSTEMD = ROOT / "deploy" / "systemd"
UNITS = sorted(SYSTEMD.glob("*.service"))
MOST_EXPOSED = 20
"""Tenths, of systemd-analyze's measure from 0 to 10."""


def documented_commands():
    blocks = re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("ldp-aggregator ")]
    return lines + re.findall(r"`(ldp-aggregator [a-z]+ [^`]*)`", GUIDE)


@pytest.mark.parametrize("line", documented_commands())
def test_a_documented_command_is_one_the_program_knows(line):
    assert parse(shlex.split(line)[1:]).command


def test_the_sample_configuration_is_read_names_every_setting_and_says_the_defaults(monkeypatch):
    for name in Settings.model_fields:
        monkeypatch.delenv(f"LDP_AGGREGATOR_{name.upper()}", raising=False)
    settings = read_settings(ROOT / "deploy" / "aggregator.toml")
    assert settings.model_dump() == Settings().model_dump()
    text = (ROOT / "deploy" / "aggregator.toml").read_text()
    for name in Settings.model_fields:
        assert re.search(rf"^(# )?\[?{name}\b", text, re.MULTILINE), name


def seconds(path, pattern):
    return float(re.search(pattern, (ROOT / "deploy" / path).read_text(), re.MULTILINE)[1])


@pytest.mark.parametrize(
    ("path", "waits", "pauses"),
    [
        ("systemd/ldp-aggregator.service", r"^TimeoutStopSec=(\d+)$", None),
        ("compose.yaml", r"^ *stop_grace_period: (\d+)s$", r'PAUSE_SECONDS: "(\d+)"'),
        ("kubernetes/aggregator.yaml", r"^ *terminationGracePeriodSeconds: (\d+)$", r'PAUSE_SECONDS, value: "(\d+)"'),
    ],
)
def test_whoever_stops_the_server_waits_for_the_pause_the_drain_and_the_last_commits(path, waits, pauses):
    pause = seconds(path, pauses) if pauses else Settings.model_fields["pause_seconds"].default
    assert seconds(path, waits) > pause + Limits().drain_seconds + COMMIT_SECONDS


def test_the_manifests_name_the_ports_the_paths_and_the_variables_that_there_are():
    text = (ROOT / "deploy" / "kubernetes" / "aggregator.yaml").read_text()
    ports = dict(re.findall(r"name: (public|operations), containerPort: (\d+)", text))
    settings = Settings()
    assert ports == {
        "public": settings.listen.rpartition(":")[2],
        "operations": settings.listen_operations.rpartition(":")[2],
    }
    probed = set(re.findall(r"path: (/\w+), port: operations", text)) | {"/metrics"}
    assert probed <= {operation.path for operation in apps.OPERATIONS}
    files = ("compose.yaml", "Dockerfile", "kubernetes/aggregator.yaml")
    read = [re.findall(r"LDP_AGGREGATOR_\w+", (ROOT / "deploy" / name).read_text()) for name in files]
    assert set() < set().union(*read) <= set(variables())


PARSERS = {
    "ldp-aggregator": parse,
    "ldp-relay": make_relay_parser().parse_args,
    "ldp-issuer": make_issuer_parser().parse_args,
}


def containers():
    """The program and the words of every container: of the manifests, the compose file and the image."""
    for path in sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml")):
        for part in yaml.safe_load_all(path.read_text()):
            for one in part["spec"].get("template", {}).get("spec", {}).get("containers", ()):
                yield one["image"].partition(":")[0], one["args"]
    for one in yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())["services"].values():
        if one["image"] in PARSERS and "command" in one:
            yield one["image"], one["command"]
    for stage in (ROOT / "deploy" / "Dockerfile").read_text().split("\nFROM ")[1:]:
        found = re.findall(r"^(?:ENTRYPOINT|CMD) (\[.*\])$", stage, re.MULTILINE)
        if len(found) == 2:
            yield json.loads(found[0])[0], json.loads(found[1])


def test_every_container_is_started_with_flags_that_its_program_knows():
    found = list(containers())
    assert {program for program, _ in found} == set(PARSERS)
    assert len(found) == 6
    for program, words in found:
        assert PARSERS[program](words)


def test_every_target_of_the_image_has_a_lock_of_its_own_and_every_hash():
    text = (ROOT / "deploy" / "Dockerfile").read_text()
    for target in ("aggregator", "relay", "issuer"):
        assert re.search(rf"^FROM base AS {target}$", text, re.MULTILINE)
        lock = (ROOT / "deploy" / "image" / f"{target}.txt").read_text()
        assert len(re.findall(r"^\S+==", lock, re.MULTILINE)) == len(re.findall(r"==\S+ \\\n    --hash=sha256:", lock))


def started(unit):
    """The words of what a unit starts, as systemd gives them to the program; of its folders these."""
    line = re.search(r"^ExecStart=(.*)$", unit.read_text(), re.MULTILINE)[1]
    return [word.replace("%%", "%").replace("$$", "$") for word in shlex.split(line) if word != "$OPTIONS"]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_starts_its_program_with_flags_it_knows(unit):
    program, *words = started(unit)
    if program == "/bin/sh":
        program, *words = shlex.split(words[1].removeprefix("exec "))
    assert PARSERS[Path(program).name](words)


@pytest.mark.parametrize("unit", [*UNITS, *sorted(SYSTEMD.glob("*.timer"))], ids=lambda unit: unit.name)
def test_systemd_finds_nothing_wrong_with_a_unit_and_hardly_anything_exposed(unit):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    result = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True)
    assert [line for line in result.stderr.splitlines() if "is not executable" not in line] == []
    if unit.suffix == ".service":
        words = ["systemd-analyze", "security", "--offline=yes", f"--threshold={MOST_EXPOSED}", str(unit)]
        assert subprocess.run(words, capture_output=True).returncode == 0


def test_the_units_of_backup_and_check_do_what_they_are_for(tmp_path):
    data, backups = tmp_path / "data", tmp_path / "backups"
    backups.mkdir()
    run, programs = partial(subprocess.run, capture_output=True, text=True, check=False), Path(sys.executable).parent
    made = run([programs / "ldp-aggregator", "token", "create", "--scope", "collector", "--data", str(data)])
    assert made.returncode == 0
    for job, folders in (("backup", f"{data}:{backups}"), ("fsck", str(data))):
        words = started(SYSTEMD / f"ldp-aggregator-{job}.service")
        words = [
            word.replace("/opt/ldp-aggregator/bin", str(programs)).replace("${STATE_DIRECTORY}", folders)
            for word in words
        ]
        done = run(words, env={**os.environ, "STATE_DIRECTORY": folders})
        assert done.returncode == 0, done.stderr
    (backup,) = backups.iterdir()
    assert run([programs / "ldp-aggregator", "fsck", "--data", str(backup)]).returncode == 0
