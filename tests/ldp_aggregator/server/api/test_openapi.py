"""The OpenAPI document says what the server does: the same routes, the same codes, the answers that there are."""

import asyncio

import pytest
from schemas import problems

from ldp_aggregator.dashboard.routes import ADMIN as ADMIN_PAGES
from ldp_aggregator.dashboard.routes import PUBLIC as PUBLIC_PAGES
from ldp_aggregator.server.api.admin import WATCHING
from ldp_aggregator.server.api.routing import JSON
from ldp_aggregator.server.housekeeping import Metrics
from ldp_aggregator.server.ingest import Ingest
from ldp_aggregator.server.intake import CampaignCache, Context, FederatedModels, Intake
from ldp_aggregator.server.problems import PROBLEMS, REPORT_CODES
from ldp_aggregator.server.process import ADMIN, OPERATIONS, PUBLIC, make_apps
from ldp_aggregator.service.settings import Settings


@pytest.fixture(params=["public", "admin", "operations"])
async def listener(request, server):
    """A listener's served document, its operations, and its application's routes."""
    names = ("public", "admin", "operations")
    base, operations = getattr(server, request.param), (PUBLIC, ADMIN, OPERATIONS)[names.index(request.param)]
    ingest, metrics, settings = Ingest(server.store, Metrics(), group_reports=1), Metrics(), Settings()
    campaigns, models = CampaignCache(server.store), FederatedModels(server.store, 1)
    intake = Intake(server.store, ingest, metrics, settings, settings.limits, campaigns)
    context = Context(
        server.store, ingest, metrics, settings, settings.limits, campaigns, models, intake, asyncio.Event()
    )
    app = make_apps(context)[names.index(request.param)]
    routes = {(r.method, r.resource.canonical) for r in app.router.routes() if r.method not in ("HEAD", "*")}
    answer = await server.ask("GET", base + "/openapi.json")
    assert answer.status == 200
    return answer.json, operations, routes


async def test_the_document_describes_the_routes_and_no_others_but_pages_for_people(listener):
    document, operations, routes = listener
    described = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    for_people = {id(PUBLIC): PUBLIC_PAGES, id(ADMIN): ADMIN_PAGES}.get(id(operations), ())
    pages = {(route.method, route.path) for route in for_people}
    assert pages <= routes
    assert described == routes - pages


async def test_every_operation_is_explained_and_answers_something(listener):
    document, _, _ = listener
    for path, item in document["paths"].items():
        for operation in item.values():
            assert operation["summary"], path
            assert operation["operationId"]
            assert any(status.startswith("2") for status in operation["responses"])
            assert ("{" in path) == any(p["in"] == "path" for p in operation["parameters"])


async def test_a_guarded_operation_says_so(listener):
    document, operations, _ = listener
    for operation in operations:
        described = document["paths"][operation.path][operation.method.lower()]
        assert ("security" in described) == bool(operation.scopes)
        assert ("401" in described["responses"]) == bool(operation.scopes)


def test_every_problem_is_answered_by_some_operation():
    answered = {code for operation in (*PUBLIC, *ADMIN, *OPERATIONS) for code in operation.all_codes()}
    # These two are answered where no operation is: an unknown path, an unknown method.
    assert set(PROBLEMS) - answered == {"not-found", "method-not-allowed"}


def test_codes_are_kebab_case_and_statuses_are_errors():
    for code, kind in PROBLEMS.items():
        assert code.replace("-", "").islower()
        assert 400 <= kind.status < 600
        assert kind.title
    assert all(REPORT_CODES.values())


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
    operation = next(row for row in WATCHING if row.path == "/healthz")
    monkeypatch.setitem(operation.answers, 200, (JSON, {"type": "object", "required": ["nothing"]}))
    assert (await server.ask("GET", server.operations + "/healthz")).status == 200
    assert described_answers == ["GET /healthz 200: answer: nothing is missing"]
    described_answers.clear()
