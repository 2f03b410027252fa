"""From a question to a server in one command, by answers on a terminal or from a public table; and what stops it."""

import json
import os
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest
from drafts import number

ANSWERS = "missed: yes | no\nage: young < old\nincome: 0 to 200000 in 8\n\nWho pays?\n"
pytestmark = pytest.mark.usefixtures("forked_programs")

LISTEN = {f"LDP_AGGREGATOR_{name}": "127.0.0.1:0" for name in ("LISTEN", "LISTEN_ADMIN", "LISTEN_OPERATIONS")}
TABLE = "note,age,hours,missed\n" + "".join(f"n{i},{'young' if i % 3 else 'old'},{i / 2},{i % 2}\n" for i in range(90))


def start(folder: Path, *options: str) -> subprocess.Popen[str]:
    command = ["ldp-aggregator", "quickstart", "--data", "data", *options]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=folder, env={**os.environ, **LISTEN}, text=True, **pipes)


def served(folder: Path, answers: str, *options: str) -> tuple[list[str], dict]:
    """The lines it prints until it serves, and the campaign as its own server tells it to the token."""
    lines = []
    with start(folder, *options) as running:
        running.stdin.write(answers)
        running.stdin.close()
        try:
            while not lines or "Ctrl-C" not in lines[-1]:
                line = running.stdout.readline()
                assert line, running.stderr.read()
                lines.append(line.strip())
            token, admin = lines[-2].rsplit(" ", 1)[1], lines[-2].split(", ")[1].rstrip("/")
            shown = {"Authorization": f"Bearer {token}"}
            request = urllib.request.Request(f"{admin}/admin/v1/campaigns", headers=shown)
            with urllib.request.urlopen(request, timeout=20) as answer:
                (campaign,) = json.load(answer)["campaigns"]
            with urllib.request.urlopen(lines[-3].rsplit(" ", 1)[1], timeout=20) as page:
                assert page.status == 200
        finally:
            running.send_signal(signal.SIGINT)
    return lines, campaign


def test_what_is_asked_becomes_a_campaign_that_is_served_and_goes_on(tmp_path):
    lines, campaign = served(tmp_path, ANSWERS)
    assert campaign["title"] == "Who pays?"
    assert any("10,000 devices would tell" in line and "points" in line for line in lines)
    draft = json.loads((tmp_path / "draft.json").read_text())
    assert draft["label"] == {"name": "missed", "classes": ["yes", "no"]}
    assert [feature["name"] for feature in draft["features"]] == ["age", "income"]
    assert served(tmp_path, "", "--draft", "draft.json")[1]["id"] == campaign["id"]


def test_a_public_table_gives_the_columns(tmp_path):
    (tmp_path / "table.csv").write_text(TABLE)
    lines, campaign = served(tmp_path, "", "--table", "table.csv", "--label", "missed", "--devices", "20")
    assert "hardly at all" in " ".join(lines)
    assert any(line.startswith("note: left out") for line in lines)
    draft = json.loads((tmp_path / "draft.json").read_text())
    assert draft["label"] == {"name": "missed", "classes": ["0", "1"]}
    found = {feature["name"]: feature for feature in draft["features"]}
    assert found["hours"] == number("hours", 0.0, 50.0, bins=8)
    assert found["age"]["values"] == ["old", "young"]
    assert campaign["title"] == "Learn missed"


@pytest.mark.parametrize(
    ("options", "answers", "says"),
    [
        ((), "", "quickstart asks on a terminal"),
        ((), ANSWERS, "draft.json is there already"),
        ((), "missed\n", "missed does not say what it can be"),
        (("--label", "missed"), "", "--label goes with --table"),
        (("--draft", "d.json", "--table", "t.csv", "--label", "y"), "", "leave --table and --label out"),
        (("--table", "none.csv"), "", "none.csv: no such file"),
        (("--table", "table.csv", "--label", "y"), "", "no column 'y'"),
        (("--table", "table.csv", "--label", "hours"), "", "a label to learn has 2 to 20"),
    ],
)
def test_what_is_wrong_is_said_in_a_line_and_nothing_is_made_or_written_over(tmp_path, options, answers, says):
    (tmp_path / "table.csv").write_text(TABLE)
    if answers == ANSWERS:
        (tmp_path / "draft.json").write_text("mine")
    with start(tmp_path, *options) as running:
        try:
            _, told = running.communicate(answers, timeout=30)
        finally:
            running.kill()
    assert running.returncode in (1, 2)
    assert says in told
    assert not (tmp_path / "data").exists()
    draft = tmp_path / "draft.json"
    assert draft.read_text() == "mine" if answers == ANSWERS else not draft.exists()
