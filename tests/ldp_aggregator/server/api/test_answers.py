"""The check that every answer of these tests is described: it finds what is not."""

from __future__ import annotations

import pytest
from schemas import problems

from ldp_aggregator.server.api import operations
from ldp_aggregator.server.api.rows import JSON

SCHEMA = {
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "string", "pattern": "^[a-z]+$"},
        "reports": {"type": ["integer", "null"], "minimum": 0},
        "status": {"enum": ["open", "closed"]},
        "rejected": {"type": "array", "items": {"type": "array", "prefixItems": [{"type": "string"}], "maxItems": 1}},
    },
    "additionalProperties": False,
}


def test_what_is_described_is_accepted():
    assert list(problems({"id": "a", "reports": None, "status": "open", "rejected": [["x"]]}, SCHEMA)) == []


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ([], "no object"),
        ({}, "id is missing"),
        ({"id": 1}, "no string"),
        ({"id": "A"}, "does not match"),
        ({"id": "a", "reports": True}, "no integer or null"),
        ({"id": "a", "reports": -1}, "below 0"),
        ({"id": "a", "status": "waiting"}, "none of"),
        ({"id": "a", "rejected": [[1]]}, r"rejected\[0\]\[0\]"),
        ({"id": "a", "rejected": [["a", "b"]]}, "2 items"),
        ({"id": "a", "colour": "red"}, "colour is not described"),
    ],
)
def test_what_is_not_described_is_found(value, problem):
    with pytest.raises(AssertionError, match=problem):
        assert "; ".join(problems(value, SCHEMA)) == ""


def test_a_schema_that_would_not_be_checked_is_refused():
    with pytest.raises(ValueError, match="maxLength"):
        list(problems("a", {"type": "string", "maxLength": 3}))


async def test_the_operations_listener_is_asked_under_its_address_or_a_known_name(serving):
    """A page that has its own name lead here would else read how many reports there are."""
    known = ("127.0.0.1:8082", "[::1]:8082", "localhost", "scraper.internal:8082")
    strange = ("evil.example", "evil.example:8082", "127.0.0.1.evil.example", "", "localhost.evil")
    async with serving(operations_names=["scraper.internal"]) as server:
        for host in (*known, *strange):
            for path in ("/healthz", "/readyz", "/metrics"):
                answer = await server.ask("GET", server.operations + path, headers={"Host": host})
                assert answer.status == (200 if host in known else 421), host


async def test_an_answer_that_is_not_described_is_noticed(server, described_answers, monkeypatch):
    operation = next(row for row in operations.OPERATIONS if row.path == "/healthz")
    monkeypatch.setitem(operation.answers, 200, (JSON, {"type": "object", "required": ["nothing"]}))
    assert (await server.ask("GET", server.operations + "/healthz")).status == 200
    assert described_answers == ["GET /healthz 200: answer: nothing is missing"]
    described_answers.clear()
