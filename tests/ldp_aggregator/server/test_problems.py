"""What the store refuses, as a client is told of it: with a time to come again where there is one."""

import json

import pytest
from prometheus_client import generate_latest

from ldp_aggregator.server.metrics import Metrics
from ldp_aggregator.server.problems import PROBLEMS, as_problem, encode_problem, refused_by_store
from ldp_aggregator.store.contract import StoreError


@pytest.mark.parametrize(
    ("code", "status", "least", "most"),
    [
        ("store-unavailable", 503, 1, 8),
        ("clock-unsettled", 503, 60, 600),
        ("campaign-closing", 409, 3600, 10800),
        ("campaign-closed", 409, None, None),
        ("campaign-deleted", 410, None, None),
        ("campaign-not-open", 409, None, None),
    ],
)
def test_who_is_refused_for_a_while_hears_when_to_come_again_and_not_all_at_one_time(code, status, least, most):
    found = [refused_by_store(code) for _ in range(60)]
    assert {(one.code, one.status) for one in found} == {(code, status)}
    if least is None:
        assert not any(one.headers for one in found)
    else:
        told = {int(one.headers["Retry-After"]) for one in found}
        assert least <= min(told) <= max(told) <= most
        assert len(told) > 3


@pytest.mark.parametrize(
    ("error", "code", "detail", "counted"),
    [
        (StoreError("jumped", "clock-unsettled"), "clock-unsettled", "", 0),
        (StoreError("wait until noon", "too-early-to-seal"), "too-early-to-seal", "wait until noon", 0),
        (StoreError("nowhere", "unknown-campaign"), "unknown-campaign", "", 0),
        (StoreError("/data is full"), "store-unavailable", "", 1),
        (StoreError("/data is damaged", "damaged-store"), "store-unavailable", "", 1),
        (ValueError("secret"), "internal-error", "", 0),
    ],
)
def test_a_failure_is_told_by_its_code_and_only_a_refusal_in_its_own_words(error, code, detail, counted):
    metrics = Metrics()
    problem = as_problem(error, metrics)
    assert (problem.code, problem.detail) == (code, detail)
    assert f"ldp_store_errors_total {counted}.0" in generate_latest(metrics.registry).decode()
    head, _, body = encode_problem(problem, close=True).partition(b"\r\n\r\n")
    told = json.loads(body)
    assert (told["code"], told["status"], told.get("detail", "")) == (code, PROBLEMS[code].status, detail)
    assert {b"Cache-Control: no-store", b"Connection: close", b"X-Content-Type-Options: nosniff"} <= {
        *head.split(b"\r\n")
    }
