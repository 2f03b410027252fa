"""The OpenAPI document says what the server does: the same routes, the same codes, the answers that there are."""

import re
from unittest.mock import MagicMock

from ldp_aggregator.dashboard.routes import ADMIN as ADMIN_PAGES
from ldp_aggregator.dashboard.routes import PUBLIC as PUBLIC_PAGES
from ldp_aggregator.dashboard.routes import TRY
from ldp_aggregator.server.apps import ADMIN, OPERATIONS, PUBLIC, make_apps
from ldp_aggregator.server.problems import PROBLEMS, REPORT_CODES


async def test_the_documents_describe_the_routes_but_pages_for_people_and_what_they_take_and_answer(server):
    addresses = (server.public, server.admin, server.operations)
    tables, for_people = (PUBLIC, ADMIN, OPERATIONS), ((*PUBLIC_PAGES, *TRY), ADMIN_PAGES, ())
    for base, app, rows, people in zip(addresses, make_apps(MagicMock()), tables, for_people, strict=True):
        answer = await server.ask("GET", base + "/openapi.json")
        assert answer.status == 200
        paths = answer.json["paths"]
        routes = {(r.method, r.resource.canonical) for r in app.router.routes() if r.method not in ("HEAD", "*")}
        pages = {(route.method, re.sub(r":[^}]*", "", route.path)) for route in people}
        assert pages <= routes
        assert {(method.upper(), path) for path, item in paths.items() for method in item} == routes - pages
        for row in rows:
            operation = paths[row.path][row.method.lower()]
            assert operation["summary"], row.path
            assert operation["operationId"]
            assert any(status.startswith("2") for status in operation["responses"])
            assert ("{" in row.path) == any(parameter["in"] == "path" for parameter in operation["parameters"])
            assert ("security" in operation) == ("401" in operation["responses"]) == bool(row.scopes)


def test_every_problem_is_answered_by_some_operation_is_in_kebab_case_and_an_error():
    answered = {code for operation in (*PUBLIC, *ADMIN, *OPERATIONS) for code in operation.all_codes()}
    # These two are answered where no operation is: an unknown path, an unknown method.
    assert set(PROBLEMS) - answered == {"not-found", "method-not-allowed"}
    for code, kind in PROBLEMS.items():
        assert code.replace("-", "").islower()
        assert 400 <= kind.status < 600
        assert kind.title
    assert all(REPORT_CODES.values())


async def test_the_operations_listener_is_asked_under_its_address_or_a_known_name(serving):
    """A page that has its own name lead here would else read how many reports there are."""
    known = ("127.0.0.1:8082", "[::1]:8082", "localhost", "scraper.internal:8082")
    strange = ("evil.example", "evil.example:8082", "127.0.0.1.evil.example", "", "localhost.evil")
    async with serving(operations_names=["scraper.internal"]) as server:
        for host in (*known, *strange):
            for path in ("/healthz", "/readyz", "/metrics"):
                answer = await server.ask("GET", server.operations + path, headers={"Host": host})
                assert answer.status == (200 if host in known else 421), host
