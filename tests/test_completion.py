"""Completion on TAB, in a real bash: commands, options, their choices and files, by a script that starts no Python."""

import shlex
import shutil
import subprocess
import sys

import pytest

from ldp_aggregator.cli.program import run as run_aggregator
from ldp_client import __main__ as client
from ldp_protocols.command_line import SHELLS

DONE = 0
WRONG_USAGE = 2


ASK = """
source {script}
function_of() {{ complete -p "$1" | sed -E 's/.*-F ([^ ]+) .*/\\1/'; }}
COMP_WORDS=({words})
COMP_CWORD={last}
COMP_LINE={line}
COMP_POINT=${{#COMP_LINE}}
$(function_of {program}) {program} {current} {before}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
"""What readline does when somebody presses TAB."""

PROGRAMS = {"ldp-aggregator": run_aggregator, "ldp-client": client.main}


def script_of(program: str, shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stop:
        PROGRAMS[program](["--completion", shell])
    assert stop.value.code == DONE
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "found", "not_found"),
    [
        ("ldp-aggregator ca", {"campaign"}, {"serve"}),
        ("ldp-aggregator ", {"serve", "campaign", "train", "audit"}, set()),
        ("ldp-aggregator campaign c", {"create", "close"}, {"show"}),
        ("ldp-aggregator token create --sc", {"--scope"}, {"--name"}),
        ("ldp-aggregator token create --scope ", {"admin", "node", "relay"}, set()),
        ("ldp-aggregator train --post n", {"norm_sub"}, {"floor"}),
        ("ldp-aggregator campaign create dra", {"draft.toml"}, {"serve"}),
        ("ldp-aggregator --da", {"--data", "--database"}, {"--config"}),
        ("ldp-aggregator campaign list --", {"--data", "--config", "--database", "--json"}, {"--seal"}),
        ("ldp-aggregator serve --d", {"--data", "--database"}, {"--listen"}),
        ("ldp-aggregator estimates --config dra", {"draft.toml"}, set()),
        ("ldp-aggregator fit --", {"--method", "--schema"}, {"--data", "--config"}),
        ("ldp-aggregator fit --method k", {"kmeans"}, {"sums"}),
        ("ldp-aggregator campaign close --s", {"--seal", "--seal-now"}, {"--undo"}),
        ("ldp-client con", {"contribute"}, {"predict"}),
        ("ldp-client contribute --max", {"--max-epsilon", "--max-total-epsilon"}, {"--storage"}),
    ],
)
def test_a_real_bash_completes(line, found, not_found, tmp_path, capsys):
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    words = line.split(" ")
    program = words[0]
    (tmp_path / "script").write_text(script_of(program, "bash", capsys), encoding="utf-8")
    (tmp_path / "draft.toml").touch()
    asked = ASK.format(
        script=tmp_path / "script",
        words=" ".join(map(shlex.quote, words)),
        last=len(words) - 1,
        line=shlex.quote(line),
        program=program,
        current=shlex.quote(words[-1]),
        before=shlex.quote(words[-2]),
    )
    # No PATH to the programs: whatever is completed, the script knows it.
    tools = {"PATH": "/usr/bin:/bin"}
    done = subprocess.run([bash, "--norc", "-c", asked], capture_output=True, text=True, cwd=tmp_path, env=tools)
    told = set(done.stdout.split())
    assert done.stderr == ""
    assert found <= told
    assert not told & not_found


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_has_a_script_that_names_the_program_and_that_the_shell_can_read(program, shell, tmp_path, capsys):
    script = script_of(program, shell, capsys)
    assert program in script
    found = shutil.which(shell)
    if found is not None:
        (tmp_path / "script").write_text(script, encoding="utf-8")
        read = subprocess.run([found, "-n", str(tmp_path / "script")], capture_output=True, text=True)
        assert (read.returncode, read.stderr) == (0, "")


def test_without_shtab_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    with pytest.raises(SystemExit) as stop:
        client.main(["--completion", "bash"])
    assert stop.value.code == WRONG_USAGE
    assert "pip install 'ldp-bayes[completion]'" in capsys.readouterr().err
