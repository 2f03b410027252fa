"""Fuzzing: requests made up from the OpenAPI document.

Whatever comes, the answer is one that the document names, never a 5xx, and the store stays sound.
"""

import asyncio
import re

import msgpack
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ldp_aggregator.server.apps import ADMIN, PUBLIC
from ldp_aggregator.server.problems import PROBLEMS

operations = st.sampled_from([(True, operation) for operation in PUBLIC] + [(False, operation) for operation in ADMIN])
texts = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=50)
queries = st.dictionaries(
    st.sampled_from(["post", "version", "max_reports", "federated", "scope", "last", "x"]),
    texts | st.just("1"),
    max_size=3,
)
bodies = st.binary(max_size=200) | st.recursive(
    st.none() | st.booleans() | st.integers(0, 2**63) | st.binary(max_size=40),
    lambda inner: st.lists(inner, max_size=4),
).map(msgpack.packb)
OURS = "application/vnd.ldp-bayes."
media_types = st.sampled_from(
    [OURS + "reports+msgpack", OURS + "statistics+msgpack", "application/json", "application/toml", "text/plain", ""]
)
tokens = st.sampled_from(["", "admin", "collector", "node", "relay", "wrong"])


@pytest.fixture
def fuzzed(serving):
    """One server for all examples, on a loop of its own."""
    loop = asyncio.new_event_loop()
    context = serving()
    server = loop.run_until_complete(context.__aenter__())
    campaign = loop.run_until_complete(server.publish())
    yield loop.run_until_complete, server, campaign
    loop.run_until_complete(context.__aexit__(None, None, None))
    loop.close()


@settings(
    max_examples=5 * settings.default.max_examples,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_no_request_of_the_api_makes_the_server_fail(fuzzed, data):
    on_public, operation = data.draw(operations)
    run, server, campaign = fuzzed
    ids = [campaign.id, "A" * 43, "x"]
    path = re.sub(r"\{\w+\}", data.draw(st.sampled_from(ids)), operation.path)
    headers = {}
    if media_type := data.draw(media_types):
        headers["Content-Type"] = media_type
    if token := data.draw(tokens):
        headers["Authorization"] = f"Bearer {server.tokens.get(token, token)}"
    method = data.draw(st.sampled_from([operation.method] * 4 + ["GET", "POST", "PUT", "HEAD", "OPTIONS"]))
    query, body = data.draw(queries), data.draw(bodies)

    url = (server.public if on_public else server.admin) + path
    answer = run(server.ask(method, url, params=query, data=body, headers=headers))
    assert answer.status < 500
    if method == operation.method:
        assert answer.status in {*operation.answers, *(PROBLEMS[code].status for code in operation.all_codes())}
    if answer.status >= 400 and method != "HEAD":
        assert answer.headers["Content-Type"].partition(";")[0] == "application/problem+json"
        assert b'"code"' in answer.content
    assert run(server.store.check()) == []
