"""Bugs are planted at one place, drawn alike by the same seed, and told apart: found or survived."""

import ast
import itertools
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import calls
import copies
import mutants
import pytest
import python_places
import token_places
import trying
from drawing import rooms, shares
from places import FILES
from planting import Mutant

ROOT = Path(__file__).resolve().parents[2]

PYTHON = '''
"""A text with 1 < 2 and not a bug."""
import logging

LOG = logging.getLogger("x")
SIZE = 1 << 3


class Door:
    def __repr__(self):
        return f"{self.size + 1}"

    def open(self, now: int = 1, *, wide: dict[int, 3] | None = None) -> bool:
        """Ends with return 2 + 2."""
        LOG.warning("%d", 1 + now)
        assert now > 0
        if not now or now < self.closes <= 9:
            raise ValueError(f"{now + 1} is {min(1, 2)}")
        for step in range(now, SIZE):
            if wide:
                continue
            self.size = max(step, -now)
        try:
            self.shut(now, wide, after=2.5, help="in 3 words")
        except (OSError, KeyError):
            return None
        return True


async def leave(door):
    door.size -= 1
    await door.close()
'''
KEPT = ("import", "LOG", "def __repr__", 'return f"', '"""', "assert")
"""Lines of it, by their words, on which nothing may be planted."""

TOKENS = {
    "x.ts": """
import { max } from "a < b && c";
// if (a < b) c(1, 2);
const text = `a ${b < c ? "x" + 1 : `${d(1, 2)}`} < 3`, pattern = /a < "b && c/;
export const of = async (first: number, last: number): Promise<boolean> => {
  if (first < last && !last) throw refuse("at most " + 3 + last);
  await this.put(first, last);
  this.size = first + 2;
  return Math.max(first, last) === 1 || true;
};
""",
    "x.kt": """
import a.max
/* if (a < b) c(1, 2) */
internal fun of(first: Int, last: Int): Boolean {
    val text = "a ${if (first < last) "x" + 1 else "y"} < 3"
    if (first < last && !last.isOpen) throw Refused("at most " + 3)
    this.put(first, last)
    return maxOf(first, last) == 1 + 2 || true
}
""",
    "x.swift": r"""
import Foundation
// if a < b { c(1, 2) }
func of(_ first: Int, _ last: Int) throws -> Bool {
    let text = "a \(first < last ? "x" + "1" : "y") < 3"
    if first < last, !last.isOpen { throw Refused("at most" + "3") }
    self.put(first, last)
    return max(first, last) == 1 + 2 || true
}
""",
}


def places_that_differ(one, other):
    """The smallest parts in which two syntax trees differ."""
    if type(one) is not type(other) or not isinstance(one, ast.AST | list):
        return [] if one == other else [(one, other)]
    if isinstance(one, list):
        if len(one) != len(other):
            return [(one, other)]
        return [place for pair in zip(one, other, strict=True) for place in places_that_differ(*pair)]
    return [place for name in one._fields for place in places_that_differ(getattr(one, name), getattr(other, name))]


@pytest.mark.parametrize("kind", sorted({kind for kinds in python_places.KINDS.values() for kind, _ in kinds}))
def test_every_kind_changes_the_tree_at_one_place_only(kind):
    planted = [mutant for mutant in python_places.mutants("x.py", PYTHON) if mutant.kind == kind]
    assert planted
    for mutant in planted:
        differ = places_that_differ(ast.parse(PYTHON), ast.parse(mutant.planted(PYTHON)))
        # Two arguments that change places, or an error with its words, are parts of one node.
        assert 0 < len(differ) <= (2 if kind in ("swapped arguments", "other exception") else 1), mutant


def versions(line):
    """All that becomes of a line of it."""
    number = next(number for number, text in enumerate(PYTHON.splitlines()) if line in text)
    return {mutant.planted(PYTHON).splitlines()[number].strip() for mutant in python_places.mutants("x.py", PYTHON)}


def test_what_is_said_and_not_done_stays():
    lines = PYTHON.splitlines()
    changed = {lines[mutant.line - 1].strip() for mutant in python_places.mutants("x.py", PYTHON)}
    assert not [line for line in changed if line.startswith(KEPT)]
    error = 'raise ValueError(f"{now + 1} is {min(1, 2)}")'
    assert versions("raise") == {error, 'raise RuntimeError("another")', "pass"}
    signature = "def open(self, now: int = 1, *, wide: dict[int, 3] | None = None) -> bool:"
    assert versions("def open") == {signature, signature.replace("= 1", "= 0"), signature.replace("= 1", "= 2")}
    assert versions("self.shut") == {
        *('self.shut(now, wide, after=2.5, help="in 3 words")', 'self.shut(now, wide, after=5.0, help="in 3 words")'),
        *('self.shut(wide, now, after=2.5, help="in 3 words")', 'self.shut(now, wide,  help="in 3 words")', "pass"),
    }


def test_operators_keep_what_they_bind():
    text = "def of(a, b, c):\n    return a | b | c\n"
    for mutant in python_places.mutants("x.py", text):
        if mutant.kind == "other arithmetic":
            assert len(places_that_differ(ast.parse(text), ast.parse(mutant.planted(text)))) == 1, mutant


def test_a_bug_knows_the_function_around_it():
    found = {(mutant.line, mutant.function) for mutant in python_places.mutants("x.py", PYTHON)}
    assert {(6, ""), (17, "Door.open"), (32, "leave")} <= found


@pytest.mark.parametrize("path", TOKENS)
def test_among_tokens_comments_texts_and_imports_stay(path):
    text = TOKENS[path]
    planted = token_places.mutants(path, text)
    kinds = {"moved boundary", "other comparison", "other connective", "other arithmetic", "other constant"}
    kinds |= {"removed sign", "dropped statement", "swapped arguments"}
    assert kinds <= {mutant.kind for mutant in planted}
    for mutant in planted:
        for line in mutant.planted(text).splitlines():
            assert line in text.splitlines() or not line.strip().startswith(
                ("import", "//", "/*", "const", "val", "let")
            )
        assert [line for line in ("throw", "at most") if line not in mutant.planted(text)] == []
        assert mutant.planted(text)[mutant.start :].startswith(mutant.new)


def test_a_line_that_throws_changes_before_the_word_only():
    changed = {
        mutant.planted(TOKENS["x.ts"]).splitlines()[5] for mutant in token_places.mutants("x.ts", TOKENS["x.ts"])
    }
    words = ' throw refuse("at most " + 3 + last);'
    assert changed == {
        *(f"  if ({condition}){words}" for condition in ("first < last && !last", "first <= last && !last")),
        *(f"  if ({condition}){words}" for condition in ("first < last || !last", "first < last && last")),
        f"  if (!(first < last && !last)){words}",
    }


@pytest.fixture(scope="module")
def every():
    """The rooms of a part of this checkout."""
    folders = ("ldp_client/delivery/", "protocols/ldp_protocols/", "javascript/src/exact/")
    return rooms(ROOT, sorted(name for name in FILES if name.startswith(folders)))


def first(count, room, seed):
    return list(itertools.islice(room.drawn(seed), count))


def test_the_same_seed_draws_the_same_and_another_one_others(every):
    names = [room.name for room in every]
    assert {"ldp_client/delivery", "protocols/ldp_protocols/document", "javascript/src/exact"} <= set(names)
    alone = rooms(ROOT, sorted(name for name in FILES if name.startswith("ldp_client/delivery/")))
    assert first(20, alone[0], 7) == first(20, every[names.index("ldp_client/delivery")], 7)
    for room in every:
        drawn = first(20, room, 7)
        assert len({(mutant.path, mutant.line) for mutant in drawn}) == len(drawn)
        assert drawn != first(20, room, 8)


def test_every_room_has_one_and_large_ones_have_more():
    assert shares({"a": 1, "b": 10, "c": 89}, 20, 7) == {"a": 1, "b": 3, "c": 16}
    assert shares({"a": 5, "b": 5}, 2, 7) == {"a": 1, "b": 1}
    assert sum(shares({"a": 1, "b": 10, "c": 89}, 2, 7).values()) == 2


TOY = "def is_open(now, closes):\n    return now < closes\n\n\ndef is_old(now, made):\n    return now > made\n"
TOY_TESTS = """
from toy import is_old, is_open

def test_open():
    assert is_open(1, 2)
    assert not is_open(2, 2)
    assert is_old(3, 1)

def test_red():
    raise ValueError
"""


@pytest.fixture
def toy(tmp_path):
    """A tester of a package of one module, one of whose two tests fails as it is."""
    root = tmp_path / "root"
    for name, text in {"toy.py": TOY, "tests/test_toy.py": TOY_TESTS, "pytest.ini": "[pytest]\n"}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    python = root / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    files = ["toy.py", "tests/test_toy.py", "pytest.ini"]
    planted, healthy = (copies.Copy.made(root, tmp_path / name, files) for name in ("planted", "healthy"))
    return trying.Tester(planted, trying.Healthy(healthy), calls.Calls({}, {}))


def test_what_tests_find_and_what_survives_them_is_told_apart(toy):
    by_name = {}
    for mutant in python_places.mutants("toy.py", TOY):
        if mutant.kind == "moved boundary":
            with toy.copy.planted(mutant):
                by_name[mutant.function] = toy.tried((("tests/test_toy.py",),)).by
    assert by_name == {"is_open": "tests/test_toy.py::test_open", "is_old": ""}
    assert toy.healthy.failing == {"tests/test_toy.py::test_red"}
    assert (toy.copy.folder / "toy.py").read_text() == TOY


def test_a_bug_that_hangs_is_found_and_ends_with_all_that_it_started(toy):
    hanging = TOY.replace(
        "return now < closes", "import subprocess; subprocess.run(['sleep', '3600.25'], start_new_session=True)"
    )
    start, end = TOY.index("return"), TOY.index("\n\n\n")
    mutant = Mutant("toy.py", 2, "other", start, end, hanging[start : hanging.index("\n\n\n")])
    toy.healthy.failing.add("tests/test_toy.py::test_red")
    with toy.copy.planted(mutant):
        assert replace(toy, seconds=3).tried((("tests/test_toy.py",),)).by.startswith("time-out of tests/test_toy.py")
    assert subprocess.run(["pgrep", "-f", "sleep 3600.25"], check=False, capture_output=True).stdout == b""


def test_near_tests_are_those_named_after_the_module_and_others_call_it():
    known = calls.Calls(
        {"ldp_client/ledger.py\ttotal": ["tests/b.py", "tests/a.py", "tests/ldp_client/test_ledger.py"]}, {}
    )
    mutant = Mutant("ldp_client/ledger.py", 1, "other", 0, 1, "", "total")
    assert trying.python_batches(mutant, known) == (("tests/ldp_client/test_ledger.py",), ("tests/a.py", "tests/b.py"))


def test_every_call_is_noted_with_its_test(tmp_path):
    package, folder = tmp_path / "ldp_toy.py", tmp_path / "build" / "calls"
    package.write_text("def called():\n    return [1]\n\n\ndef other():\n    pass\n")
    folder.mkdir(parents=True)
    code = "import calls, os, sys; calls.note(sys.argv[1]); import ldp_toy; ldp_toy.called()"
    path = os.pathsep.join([str(tmp_path), str(ROOT / "tests" / "mutants")])
    environment = os.environ | {"PYTHONPATH": path, "PYTEST_CURRENT_TEST": "tests/test_x.py::test_y (call)"}
    subprocess.run([sys.executable, "-c", code, folder], check=True, env=environment)
    lines = [line for notes in folder.iterdir() for line in notes.read_text().splitlines()]
    found = calls.noted(lines, "0.50s call     tests/test_x.py::test_y\n0.25s setup    tests/test_x.py::test_y\n")
    assert found == calls.Calls(
        {"ldp_toy.py\t<module>": ["tests/test_x.py"], "ldp_toy.py\tcalled": ["tests/test_x.py"]},
        {"tests/test_x.py": 0.75},
    )
    assert found.of("ldp_toy.py", "other") == []
    assert found.of("ldp_toy.py", "") == ["tests/test_x.py"]


def results(found, survived):
    mutant = Mutant("pyproject.toml", 3, "other constant", 0, 1, "x")
    verdicts = [trying.Verdict("tests/a.py::test_b", ["tests/a.py"], 36.0)] * found
    verdicts += [trying.Verdict("", ["tests/a.py", "tests/c.py"], 36.0)] * survived
    return [mutants.Tried("a/room", mutant, verdict) for verdict in verdicts]


@pytest.mark.parametrize(("found", "survived", "status"), [(9, 1, 0), (8, 1, 1), (0, 0, 1)])
def test_below_nine_of_ten_a_run_fails_and_lists_the_survivors(found, survived, status, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(sys, "argv", ["mutants.py", "--seed", "7", "--only", "ldp_client/delivery", "--jobs", "1"])
    monkeypatch.setattr(mutants, "BUILD", tmp_path)
    files = sorted(name for name in FILES if name.startswith("ldp_client/delivery/"))
    monkeypatch.setattr(mutants, "checked_out", lambda: files)
    monkeypatch.setattr(copies.Copy, "made", lambda root, folder, files: folder.mkdir() or copies.Copy(root, folder))
    monkeypatch.setattr(calls, "recorded", lambda copy, jobs: calls.Calls({}, {}))
    monkeypatch.setattr(mutants, "tried", lambda *_: results(found, survived))
    assert mutants.main() == status
    told = (tmp_path / "mutants.txt").read_text()
    assert f"{found} of {found + survived} found" in told.splitlines()[-1]
    assert told.count("pyproject.toml:3 other constant") == survived
    assert told.count("survived tests/a.py tests/c.py") == survived
    assert told in capsys.readouterr().out
    assert len(json.loads((tmp_path / "mutants.json").read_text())) == found + survived


class Fake:
    """A tester that refuses every second mutant."""

    def __init__(self):
        self.asked = []

    def verdict(self, mutant):
        self.asked.append(mutant)
        return None if len(self.asked) % 2 else trying.Verdict("a test", [], 0.0)


def test_one_that_a_compiler_refuses_is_drawn_anew_and_a_run_goes_on_where_it_was(every, tmp_path):
    drawn = {room.name: first(40, room, 7) for room in every[:2]}
    given = dict.fromkeys(drawn, 3)

    def run(tester):
        journal = mutants.Journal(tmp_path / "journal", "digest")
        return mutants.tried(given, {name: iter(of) for name, of in drawn.items()}, [tester], journal)

    begun = Fake()
    told = run(begun)
    assert len(told) == 6
    assert len(begun.asked) == 12
    again = Fake()
    assert run(again) == told
    assert again.asked == []
    assert mutants.Journal(tmp_path / "journal", "another").known == {}
