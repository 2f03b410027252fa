"""The manners of the five programs: examples that work, mistakes told with what to do next, documented exit codes."""

import argparse
import logging
import re
import shlex
import socket
from pathlib import Path

import pytest

from ldp_aggregator.cli import program
from ldp_aggregator.cli.program import make_parser as aggregator_parser
from ldp_aggregator.cli.program import run as run_aggregator
from ldp_aggregator.issuer import __main__ as issuer
from ldp_aggregator.relay import __main__ as relay
from ldp_client import __main__ as client
from ldp_protocols import command_line
from ldp_protocols.command_line import EXAMPLES, EXIT_CODES, Parser, parsers_under
from ldp_simulations import __main__ as simulate

PROGRAMS = {
    "ldp-aggregator": aggregator_parser,
    "ldp-client": client.make_parser,
    "ldp-issuer": issuer.make_parser,
    "ldp-relay": relay.make_parser,
    "ldp-simulate": simulate.make_parser,
}
PRINTING_JSON = {
    "ldp-aggregator": {"list", "show", "verify", "estimates", "status", "fsck", "audit", "fit"},
    "ldp-client": {"contribute", "predict", "status"},
    "ldp-issuer": set(),
    "ldp-relay": set(),
    "ldp-simulate": {"demo", "population", "accuracy", "plan", "series", "draft", "reproduce"},
}
MOST_COMMANDS = 43
MOST_FLAGS = 237
"""Of all commands together, each flag counted with every command that has it."""
DASHED = "-" + "A" * 42
REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "commands.md"


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_help_ends_with_examples_which_the_parser_takes(name):
    root = PROGRAMS[name]()
    parse = program.parse if name == "ldp-aggregator" else root.parse_args
    for parser in parsers_under(root):
        head, *examples = parser.format_help().rpartition(EXAMPLES)[2].rstrip().split("\n")
        assert (head, bool(examples)) == ("", True), parser.prog
        for example in examples:
            assert example.startswith(f"  {parser.prog}"), example
            words = shlex.split(example)[len(shlex.split(root.prog)) :]
            assert parse(words) is not None


def leaves_of(parser):
    """The commands without commands of their own."""
    return [one for one in parsers_under(parser) if one._subparsers is None]


def test_commands_and_flags_stay_few():
    """What is added takes something else's place."""
    leaves = [one for make in PROGRAMS.values() for one in leaves_of(make())]
    flags = [action for one in leaves for action in one._actions if set(action.option_strings) - {"-h", "--help"}]
    assert len(leaves) <= MOST_COMMANDS
    assert len(flags) <= MOST_FLAGS


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_command_that_prints_data_prints_json_when_asked(name):
    told = {
        parser.prog.split()[-1]
        for parser in parsers_under(PROGRAMS[name]())
        if any("--json" in action.option_strings for action in parser._actions)
    }
    assert told >= PRINTING_JSON[name]


@pytest.mark.parametrize(
    "words",
    [
        ["campaign", "show", DASHED, "--json"],
        ["campaign", "close", "-" + DASHED[1:]],
        ["train", DASHED, "--evaluation", "--" + "b" * 41],
        ["status", "--log", "--campaign", DASHED],
        ["key", "sign", "k", "--version", "1", "--expires-in", "1", "--campaign", f"{DASHED}=m.json", "--output", "d"],
    ],
)
def test_an_id_that_begins_with_a_dash_is_an_id(words):
    """One in 64 does."""
    given = vars(program.parse(words)).values()
    ids = [word for word in words if word.startswith("-") and len(word) >= 43]
    flat = [one for value in given for one in (value if isinstance(value, list) else [value])]
    assert set(ids) <= {one for one in flat if isinstance(one, str)}


URL = "https://collect.example.org"
TABLE = "age,income\nyoung,high\nold,low\n"
STORE = ["--data", "a folder"]
CHOSEN = ["--config", "f.toml", *STORE]
NO_VALUE = "ldp-aggregator: argument --data: expected one argument; see ldp-aggregator --help\n"
NO_STORE = "no store is opened; leave out --config and --data; see"
TWICE = ["--data", "x.csv", "--schema", "d.toml", "--label", "age"]
MISTAKES = [
    ("ldp-simulate", ["demo", "--label", "age"], 2, ["--data TABLE"]),
    ("ldp-simulate", ["demo", "--data", "none.csv", "--label", "age"], 1, ["none.csv: no such file"]),
    ("ldp-simulate", ["population", *TWICE], 2, ["--schema DRAFT", "--label COLUMN"]),
    ("ldp-simulate", ["plan"], 2, ["--schema", "plan --help"]),
    ("ldp-aggregator", ["campaign", "list"], 1, ["there is no store in", "campaign create"]),
    ("ldp-aggregator", ["campaign", "create", "none.toml"], 1, ["none.toml cannot be read"]),
    ("ldp-aggregator", ["campaign", "create", "x.csv"], 1, ["x.csv is no draft", "ends in .toml"]),
    ("ldp-aggregator", ["trian"], 2, ["trian", "train", "--help"]),
    ("ldp-aggregator", [], 2, ["COMMAND", "--help"]),
    ("ldp-aggregator", ["serve", "--confg", "f.toml"], 2, ["--confg", "see ldp-aggregator serve --help"]),
    ("ldp-aggregator", ["campaign", "list", "more"], 2, ["more", "see ldp-aggregator campaign list --help"]),
    ("ldp-aggregator", ["--data"], 2, [NO_VALUE]),
    ("ldp-aggregator", ["campaign", "list", "--data"], 2, [NO_VALUE]),
    ("ldp-aggregator", ["campaign", "list", "--data", "--json"], 2, [NO_VALUE]),
    ("ldp-aggregator", ["fit", "t.csv", "--schema", "s", "--epsilon", "1", *CHOSEN], 2, [f"fit: {NO_STORE}"]),
    ("ldp-aggregator", ["merge", "a", "b", "-o", "c", *CHOSEN], 2, [f"merge: {NO_STORE}"]),
    ("ldp-aggregator", ["audit", *CHOSEN], 2, [f"ldp-aggregator audit: {NO_STORE}"]),
    # Options are spelled out, and an unknown one is no id unless it has the length of one.
    ("ldp-aggregator", ["campaign", "list", "--dat", "x"], 2, ["unrecognized arguments"]),
    ("ldp-aggregator", ["campaign", "list", "--js"], 2, ["unrecognized arguments"]),
    ("ldp-aggregator", ["campaign", "list", "--conf=f"], 2, ["unrecognized arguments"]),
    ("ldp-aggregator", ["campaign", "list", "-" + "A" * 41], 2, ["A" * 41, "--help\n"]),
    ("ldp-client", ["predict", URL, "A" * 43, "--record-file", "r.json"], 1, ["r.json cannot be read", "No such file"]),
    ("ldp-client", ["status"], 2, ["URL", "status --help"]),
]


@pytest.mark.parametrize(("name", "words", "code", "told"), MISTAKES)
def test_a_mistake_is_told_in_one_line_with_what_to_do_next(name, words, code, told, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LDP_AGGREGATOR_DATA", str(tmp_path / "data"))
    Path("x.csv").write_text(TABLE, encoding="utf-8")
    try:
        ended = RUN[name](words)
    except SystemExit as stop:
        ended = stop.code
    out, err = capsys.readouterr()
    assert (ended, out, err.count("\n")) == (code, "", 1), err
    assert [part for part in told if part not in err] == []


@pytest.mark.parametrize(
    "words",
    [
        [*STORE, "campaign", "list", "--json"],
        ["campaign", *STORE, "list", "--json"],
        ["campaign", "list", "--json", *STORE],
        ["campaign", "list", "--data=a folder", "--json"],
        ["--data", "another", "campaign", "list", *STORE, "--json"],
    ],
)
def test_the_options_of_the_store_stand_anywhere_and_the_last_one_holds(words):
    chosen = program.parse(words)
    assert (str(chosen.data), chosen.json) == ("a folder", True)


def test_every_command_says_in_its_help_whether_it_opens_a_store():
    without = []
    for one in leaves_of(aggregator_parser()):
        told = " ".join(one.format_help().split())
        if one.get_default("opens_store"):
            assert [option for option in ("--config", "--data", "--database") if option not in told] == [], one.prog
        else:
            without.append(one.prog.removeprefix("ldp-aggregator "))
    nodes, keys = {"node check", "node submit", "node withdraw"}, {"key create", "key sign"}
    assert set(without) == {"fit", "merge", "audit", "campaign verify", *nodes, *keys}


RUN = {"ldp-aggregator": run_aggregator, "ldp-client": client.main, "ldp-simulate": simulate.main}


def test_a_taken_port_is_named_with_the_option_that_takes_another(tmp_path, capsys):
    before = logging.getLogger().handlers[:]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = ["serve", "--data", str(tmp_path), "--listen", f"127.0.0.1:{port}"]
        assert run_aggregator([*words, "--listen-admin", "0", "--listen-operations", "0"]) == command_line.FAILED
    assert logging.getLogger().handlers == before, "what a server logs to is gone with it"
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert [part for part in (f"127.0.0.1 port {port}", "--listen") if part not in err] == []


def test_ctrl_c_ends_every_program_without_a_traceback(monkeypatch, tmp_path):
    def interrupted(*_):
        raise KeyboardInterrupt

    def replaced(self, words=None, namespace=None):
        return argparse.Namespace(run=interrupted, command=interrupted)

    monkeypatch.setattr(Parser, "parse_args", replaced)
    assert run_aggregator(["fsck"]) == client.main([]) == simulate.main([]) == command_line.INTERRUPTED


def test_one_table_of_exit_codes_is_in_the_reference_and_in_every_help():
    table = REFERENCE.read_text(encoding="utf-8").partition("## Exit codes")[2].partition("## ")[0]
    rows = {int(code): meaning for code, meaning in re.findall(r"^\| (\d+) \| (.*?) \|$", table, re.MULTILINE)}
    assert rows == command_line.MEANINGS
    for make in PROGRAMS.values():
        for parser in parsers_under(make()):
            told = parser.format_help().partition(EXIT_CODES)[2].partition(EXAMPLES)[0]
            shown = {int(code): meaning for code, meaning in re.findall(r"^  (\d+) +(.*)$", told, re.MULTILINE)}
            assert shown == command_line.MEANINGS, parser.prog
