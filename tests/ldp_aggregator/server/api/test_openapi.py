"""The OpenAPI document says what the server does: the same routes, the same codes."""

from __future__ import annotations

import asyncio

import pytest

from ldp_aggregator.dashboard.routes import ADMIN as ADMIN_PAGES
from ldp_aggregator.dashboard.routes import PUBLIC as PUBLIC_PAGES
from ldp_aggregator.server.app import ADMIN, OPERATIONS, PUBLIC, make_apps
from ldp_aggregator.server.context import CampaignCache, Context, FederatedModels
from ldp_aggregator.server.desk import Desk
from ldp_aggregator.server.ingest import Ingest
from ldp_aggregator.server.metrics import Metrics
from ldp_aggregator.server.problems import PROBLEMS, REPORT_CODES
from ldp_aggregator.service.settings import Settings


@pytest.fixture(params=["public", "admin", "operations"])
async def listener(request, server):
    """A listener's served document, its operations, and its application's routes."""
    names = ("public", "admin", "operations")
    base, operations = getattr(server, request.param), (PUBLIC, ADMIN, OPERATIONS)[names.index(request.param)]
    ingest, metrics, settings = Ingest(server.store, Metrics(), group_reports=1), Metrics(), Settings()
    campaigns, models = CampaignCache(server.store), FederatedModels(server.store, 1)
    desk = Desk(server.store, ingest, metrics, settings, settings.limits, campaigns)
    context = Context(
        server.store, ingest, metrics, settings, settings.limits, campaigns, models, desk, asyncio.Event()
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
