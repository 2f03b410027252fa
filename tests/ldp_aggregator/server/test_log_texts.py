"""No line of a log has an exception's text: a database's may quote a row, a library's what a client sent."""

import ast
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from cells import cell_campaign, submission

import ldp_aggregator
from ldp_aggregator.server.log import logged_to_standard_error
from ldp_aggregator.store import SqliteStore
from ldp_aggregator.store.contract import DAMAGED, StoreError, told_of
from ldp_aggregator.store.sql import campaigns

PACKAGE = Path(ldp_aggregator.__file__).parent
TELLING = {"kind_of", "told_of", "type"}
"""What is made of an exception for a log."""
NODES_OWN = PACKAGE / "flower"
"""A node's log stays with whoever holds the data, who has to read what is wrong with his table."""


def logged_texts(path: Path) -> Iterator[str]:
    """Every place where a caught exception itself goes into a log, but to have its places in the code told."""
    for handler in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(handler, ast.ExceptHandler) or handler.name is None:
            continue
        for call in ast.walk(handler):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
                continue
            if not (isinstance(call.func.value, ast.Name) and call.func.value.id.lstrip("_") == "LOG"):
                continue
            given = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg != "exc_info")]
            told = {
                id(name)
                for node in ast.walk(call)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in TELLING
                for name in ast.walk(node)
            }
            for name in (node for value in given for node in ast.walk(value)):
                if isinstance(name, ast.Name) and name.id == handler.name and id(name) not in told:
                    yield f"{path.relative_to(PACKAGE)}:{name.lineno}"


def test_no_call_of_a_log_has_an_exception_itself_but_its_kind():
    files = [path for path in PACKAGE.rglob("*.py") if NODES_OWN not in path.parents]
    assert len(files) > 100
    assert [found for path in files for found in logged_texts(path)] == []


async def test_a_row_that_a_database_quotes_is_not_written_down(tmp_path, monkeypatch, capsys):
    add_part = campaigns.add_part

    async def quoting(db, number, *rest):
        if number == 1:
            raise sqlite3.IntegrityError("Key (id)=(8f3a) already exists")
        return await add_part(db, number, *rest)

    monkeypatch.setattr(campaigns, "add_part", quoting)
    store = SqliteStore(tmp_path / "store.sqlite3")
    both = [cell_campaign(64), cell_campaign(64, title="sound")]
    with logged_to_standard_error("info"):
        for one in both:
            await store.create_campaign(one)
        outcomes = await store.count([submission(one, [1]) for one in both])
    await store.close()
    assert [outcome.refused for outcome in outcomes] == ["store-unavailable", None]
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["reason"] == "IntegrityError"
    assert "8f3a" not in line


def test_the_file_that_a_failure_is_about_is_told_by_its_name():
    missing = OSError(2, "No such file or directory", "/srv/data/ids-1-2.run")
    assert told_of(missing) == {"reason": "FileNotFoundError ENOENT", "file": "ids-1-2.run"}
    damaged = StoreError("/srv/data/ids-1-2.run is damaged: it ends early", DAMAGED, file="ids-1-2.run")
    assert told_of(damaged) == {"reason": "StoreError damaged-run", "file": "ids-1-2.run"}
    assert told_of(ValueError("a secret")) == {"reason": "ValueError"}
