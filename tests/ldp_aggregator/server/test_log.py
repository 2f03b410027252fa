"""A log tells what happened and of which kind it was; no line of the code writes anything else into it."""

import ast
import json
import logging
import sqlite3
from pathlib import Path

import pytest
from cells import cell_campaign, submission
from discretion import strange

from ldp_aggregator.server.log import JsonFormatter, logged_to_standard_error
from ldp_aggregator.store import SqliteStore
from ldp_aggregator.store.contract import StoreError, told_of
from ldp_aggregator.store.sql import campaigns

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("protocols/ldp_protocols", "ldp_client", "ldp_aggregator", "simulations/ldp_simulations")
LEVELS = {"debug", "info", "warning", "warn", "error", "critical", "exception", "log"}
ABOUT_A_CONFIGURATION = ("ldp_aggregator/flower/client.py", "error")
"""A node's own settings, told on the node: there is no record in them."""
WITHOUT_A_TEXT = {"kind_of", "told_of", "type", "_kinds"}
"""What makes of an exception something that a log may hold."""


def modules():
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def logged(tree):
    """The calls that write into a log."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LEVELS:
            logger = node.func.value
            if "LOG" in ast.unparse(logger).upper() and "math" not in ast.unparse(logger):
                yield node


def exceptions_in(node, caught):
    """The names of caught exceptions that stand in an expression with their text."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in WITHOUT_A_TEXT:
        return set()
    if isinstance(node, ast.keyword) and node.arg == "exc_info":
        return set()  # Of a trace the formatter writes the places alone.
    found = {node.id} & caught if isinstance(node, ast.Name) else set()
    return found.union(*(exceptions_in(child, caught) for child in ast.iter_child_nodes(node)))


def caught_in(tree):
    """Names under which exceptions are known in a module: caught, asked of a task, or handed on."""
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.name}
    arguments = (one for node in ast.walk(tree) if isinstance(node, ast.arguments) for one in node.args)
    return (
        names
        | {one.arg for one in arguments if one.annotation and "Exception" in ast.unparse(one.annotation)}
        | {"error"}
    )


def texts(source):
    """What is wrong with the log lines of a module: ``line: why``."""
    tree = ast.parse(source)
    caught = caught_in(tree)
    for call in logged(tree):
        if not (call.args and isinstance(call.args[0], ast.Constant | ast.Name)):
            yield f"{call.lineno}: an event is a text of its own, with nothing filled in"
        yield from (f"{call.lineno}: {name}" for name in sorted(exceptions_in(call, caught)))
        if call.func.attr == "exception":
            yield f"{call.lineno}: what an exception says stands in its trace"
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "reason":
                    yield from (f"{value.lineno}: {name}" for name in sorted(exceptions_in(value, caught)))


def test_no_line_of_the_code_logs_what_an_exception_says():
    found = {
        (path.relative_to(ROOT).as_posix(), one.partition(": ")[2])
        for path in modules()
        for one in texts(path.read_text(encoding="utf-8"))
    }
    assert found == {ABOUT_A_CONFIGURATION}
    assert sum(len(list(logged(ast.parse(path.read_text(encoding="utf-8"))))) for path in modules()) > 20


@pytest.mark.parametrize(
    "line",
    [
        'LOG.error("failed", extra={"reason": str(error)})',
        'LOG.error("failed", extra={"reason": f"{error!r}"})',
        'LOG.error("failed", extra={"reason": repr(error.args)})',
        'LOG.error(f"failed {error}")',
        'LOG.error("failed: %s", error)',
        'self._logger.warning("failed", error)',
        'LOG.exception("failed")',
        'about = {"reason": str(error)}\n    LOG.error("failed", extra=about)',
    ],
)
def test_a_line_that_would_is_found(line):
    assert list(texts(f"try:\n    pass\nexcept ValueError as error:\n    {line}\n"))


def test_the_client_logs_nothing_unless_an_app_hands_it_the_log():
    for path in modules():
        if "ldp_aggregator" not in path.parts and "ldp_simulations" not in path.parts and path.name != "log.py":
            assert "import logging" not in path.read_text(encoding="utf-8"), path


def line(event="store error", **more):
    return json.dumps({"time": "2026-01-01T00:00:00.000+00:00", "level": "error", "event": event, **more})


ID = bytes(range(160, 176))


@pytest.mark.parametrize(
    "said",
    [
        {"event": f"report {ID.hex()} failed"},
        {"event": "Key (id)=(1)"},
        *(
            {"reason": text}
            for text in (ID.hex(), ID.hex().upper(), repr(ID), f"StoreError {ID.hex()}", "IntegrityError 1")
        ),
        {"reason": "IntegrityError: UNIQUE constraint failed"},
        {"reason": "StoreError from /var/lib/ldp/aggregator.sqlite3"},
        {"reason": "ldp_this-is-a-token"},
        {"campaign": ID.hex()},
        {"kind": "writer 7"},
        {"address": "192.0.2.7"},
        {"trace": ["/home/ann/secret.py:1 f"]},
        {"token": "a"},
    ],
)
def test_a_line_that_tells_an_id_a_text_a_path_or_a_token_is_seen(said):
    assert strange(line(**said))


def test_a_line_that_tells_what_happened_and_of_which_kind_is_none():
    assert (
        strange(line(reason="StoreError store-unavailable from IntegrityError SQLITE_CONSTRAINT", campaign="c" * 43))
        == []
    )
    assert strange(line("a message of asyncio", kind="writer", address="127.0.0.1:8080")) == []
    error = ValueError("a person's value")
    record = logging.LogRecord(
        "ldp_aggregator", logging.ERROR, "file", 1, "internal error", (), (ValueError, error, None)
    )
    assert "value" not in JsonFormatter().format(record)


async def test_a_row_that_a_database_quotes_is_not_written_down(tmp_path, monkeypatch, capsys):
    add_part = campaigns.add_part

    async def quoting(db, row, *rest):
        if row.number == 1:
            raise sqlite3.IntegrityError("Key (id)=(8f3a) already exists")
        return await add_part(db, row, *rest)

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
    damaged = StoreError("/srv/data/ids-1-2.run is damaged: it ends early", "damaged-run", file="ids-1-2.run")
    assert told_of(damaged) == {"reason": "StoreError damaged-run", "file": "ids-1-2.run"}
    assert told_of(ValueError("a secret")) == {"reason": "ValueError"}


def test_of_a_librarys_message_the_pattern_alone_is_told():
    def told(name, pattern, *given):
        record = logging.LogRecord(name, logging.WARNING, "file.py", 1, pattern, given, None)
        return json.loads(JsonFormatter().format(record))["event"]

    assert told("aiohttp.server", "cannot read %s", "/v1/campaigns/secret") == "cannot read %s"
    assert told("aiohttp.server", "cannot read /v1/campaigns/secret") == "a message of aiohttp.server"
    assert told("ldp_aggregator.server", "closed %s", "at once") == "closed at once"
