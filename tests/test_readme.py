"""Every example of the README runs as it stands there."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ldp_aggregator.service.drafts import compile_draft
from ldp_client.answering import perturb
from protocols import encode_upload

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON, SHELL = (re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL) for language in ("python", "sh"))
AGGREGATOR = [sys.executable, "-m", "ldp_aggregator"]
FREE_PORTS = ["--port", "0", "--admin-port", "0", "--operations-port", "0"]
FREE = " ".join(FREE_PORTS[2:])


def block(blocks: list[str], beginning: str) -> str:
    """The one block with this text in it."""
    (found,) = [text for text in blocks if beginning in text]
    return found


@pytest.fixture(scope="module")
def campaign():
    return compile_draft((ROOT / "examples" / "campaign.toml").read_bytes(), toml=True)


@pytest.fixture
def served(tmp_path) -> Iterator[str]:
    """The public address of a server on the folder ``data`` of ``tmp_path``."""
    command = [*AGGREGATOR, "serve", "--data", "data", "--host", "127.0.0.1", *FREE_PORTS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as server:
        try:
            yield re.search(r"public (\S+)", server.stdout.readline())[1]
        finally:
            server.send_signal(signal.SIGTERM)


def test_there_is_nothing_in_the_readme_that_no_test_runs():
    assert len(PYTHON) == 2
    assert len(SHELL) == 3


def test_the_client_example_contributes_and_later_classifies(served, campaign, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    draft = ROOT / "examples" / "campaign.toml"
    subprocess.run([*AGGREGATOR, "campaign", "create", str(draft), "--data", "data"], check=True, capture_output=True)
    scope = {"url": served, "campaign_id": campaign.id}
    exec(block(PYTHON, "from ldp_client import Classifier, Device"), scope)
    told = capsys.readouterr().out
    assert "Will a customer miss a payment? - a credit-risk model" in told
    assert scope["part"].status().sent == 1
    subprocess.run([*AGGREGATOR, "train", campaign.id, "--data", "data", "--anyway"], check=True, capture_output=True)
    (call,) = re.findall(r"`(Classifier\.fetch\(.*?\)\.predict\(.*?\))`", README)
    assert eval(call, scope) in ("yes", "no")


def test_the_server_example_estimates_and_trains(campaign, capsys):
    draft = {key: value for key, value in json.loads(campaign.document).items() if key != "questions"}
    people = [({"age": "young", "income": 30_000}, "yes"), ({"age": "old", "income": 90_000}, "no")] * 50
    uploads = [encode_upload(perturb(campaign, record, label)) for record, label in people]
    scope = {"draft": draft, "uploads": uploads}
    exec(block(PYTHON, "from ldp_aggregator import"), scope)
    told = capsys.readouterr().out
    assert "processed" in told
    assert "epsilon = 2" in told
    assert scope["tally"].n.sum() == 100
    assert '"kind":"naive-bayes"' in scope["device_model"]


def test_the_shell_example_goes_from_serving_to_predicting(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    script = block(SHELL, "ldp-aggregator serve").replace("8080", port).replace("serve", f"serve {FREE}", 1)
    ready = f"until (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null; do sleep 0.1; done\n"
    first, rest = script.split("\n", 1)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-euc", f"{first}\ntrap 'kill $!' EXIT\n{ready}{rest}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=tmp_path,
        env=environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip().splitlines()[-1] in ("yes", "no")


def test_the_projection_example_fits(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    features = ",".join(f'{{"name": "{n}", "kind": "continuous", "low": 0, "high": 9}}' for n in "xyz")
    Path("draft.json").write_text(
        '{"version": 1, "title": "t", "label": {"name": "class", "classes": ["a", "b"]}, '
        f'"features": [{features}], "privacy": {{"epsilon": 1}}}}'
    )
    rows = [f"{i % 7},{(i * 5) % 9},{i % 4},{'ab'[i % 7 > 3]}" for i in range(60)]
    Path("public.csv").write_text("x,y,z,class\n" + "\n".join(rows))
    command = block(SHELL, "project fit").split()
    assert command[0] == "ldp-aggregator"
    subprocess.run([*AGGREGATOR, *command[1:]], check=True, capture_output=True)
    assert '"fitted_on": "public"' in Path("draft.json").read_text()


def test_the_two_commands_exist_in_the_makefile():
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    commands = re.findall(r"^make (\w+)", block(SHELL, "make demo"), re.MULTILINE)
    assert commands == ["demo", "test"]
    assert set(commands) <= set(targets)
