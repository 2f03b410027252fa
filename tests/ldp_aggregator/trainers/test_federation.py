"""Shares on the wire, merged in any order, replaced and withdrawn; a minority that lies; a node's requests."""

import itertools
import json
import random
import re
from pathlib import Path

import msgpack
import numpy as np
import pytest
from drafts import draft, text
from sockets import Scripted, exactly, until_blank_line

from ldp_aggregator.node_statistics import Releases, campaign_of, has_other_rows, most_bytes
from ldp_aggregator.trainers import (
    FederatedNB,
    FederatedState,
    SufficientStatisticsNB,
    decode_share,
    encode_share,
    model_of_totals,
    node_statistics,
)
from ldp_aggregator.trainers.federation import _median
from ldp_aggregator.trainers.model_from_statistics import Options, rebuild
from ldp_aggregator.trainers.sensitivities import ADD_REMOVE
from ldp_aggregator.trainers.share_delivery import Aggregator, send_share, withdraw_share
from ldp_aggregator.trainers.statistics import plan_noise
from ldp_protocols import Campaign, DocumentError
from ldp_protocols.document.model import DiscreteLikelihood, GaussianLikelihood, Model

ATTEMPTS = 5


pytestmark = pytest.mark.filterwarnings("ignore::ldp_aggregator.trainers.randomness.PrivacyWarning")

PAGE = Path(__file__).resolve().parents[3] / "docs" / "trainers.md"


@pytest.fixture(scope="module")
def campaign(schema):
    return Campaign.compile({"version": 1, "title": "Federated", **schema, "privacy": {"epsilon": 2}})


@pytest.fixture(scope="module")
def shares(campaign, table):
    frame, labels = table
    return {
        f"node-{i}": node_statistics(campaign, frame[i::6].reset_index(drop=True), labels[i::6], random_state=i)
        for i in range(6)
    }


def test_every_order_gives_the_same_bits_and_those_of_the_batch(campaign, shares):
    documents = {
        FederatedState(campaign, {node: shares[node] for node in order}).model(groups=1).to_json()
        for order in itertools.islice(itertools.permutations(shares), 0, 720, 60)
    }
    total = sum(decode_share(share, campaign) for share in shares.values())
    state = FederatedState(campaign, shares)
    plans = plan_noise(state.schema, 2, ADD_REMOVE)
    batch = rebuild(state.schema, total, plans, Options(), copies=6)
    assert len(documents) == 1
    assert Model.from_json(documents.pop()).likelihoods == Model.from_json(batch.to_json()).likelihoods
    assert state.totals == tuple(total.tolist())
    assert model_of_totals(campaign, state.totals, nodes=6).to_json() == state.model(groups=1).to_json()


def test_a_repeated_share_counts_once_a_replaced_one_leaves_nothing_and_a_withdrawn_one_was_never_there(
    campaign, shares
):
    state = FederatedState(campaign, shares)
    before = state.totals
    assert not state.put("node-3", shares["node-3"])
    assert (state.totals, len(state.nodes)) == (before, 6)
    assert state.put("node-0", shares["node-1"])
    assert state.totals == FederatedState(campaign, {**shares, "node-0": shares["node-1"]}).totals
    assert state.put("node-0", shares["node-0"])
    assert state.totals == before
    assert [state.withdraw("node-5") for _ in range(2)] == [True, False]
    rest = {node: share for node, share in shares.items() if node != "node-5"}
    assert state.totals == FederatedState(campaign, rest).totals
    with pytest.raises(ValueError, match="no node has sent"):
        FederatedState(campaign).model()


def test_everything_but_the_one_encoding_is_refused_and_nothing_is_merged(campaign, schema, shares):
    good, state = shares["node-0"], FederatedState(campaign, shares)
    before, (version, campaign_id, values) = state.totals, msgpack.unpackb(good)
    other = Campaign.compile({"version": 1, "title": "Other", **schema, "privacy": {"epsilon": 2}})
    for message, data in (
        ("not one msgpack value", good + b"\x00"),
        ("not one msgpack value", good[:-1]),
        ("not one msgpack value", b""),
        ("a share is", msgpack.packb([2, campaign_id, values])),
        ("a share is", msgpack.packb([True, campaign_id, values])),
        ("a share is", msgpack.packb([version, campaign_id])),
        ("another campaign", msgpack.packb([version, other.id, values])),
        ("list of integers", msgpack.packb([version, campaign_id, 7])),
        (f"has {len(values)} integers", msgpack.packb([version, campaign_id, values[:-1]])),
        *(
            ("entry 0 must be an integer", msgpack.packb([version, campaign_id, [first, *values[1:]]]))
            for first in (1.0, True, (1 << 62) + 1)
        ),
        ("not the shortest", b"\x93\xcc\x01" + good[2:]),
    ):
        with pytest.raises(DocumentError, match=message) as caught:
            state.put("node-9", data)
        assert caught.value.code == "malformed-share"
    longer = encode_share(campaign, np.array([300, *values[1:]]))
    signed = longer.replace(b"\xcd\x01\x2c", b"\xd1\x01\x2c", 1)  # As long, and msgpack's other form of 300.
    assert (len(signed), signed == longer) == (len(longer), False)
    with pytest.raises(DocumentError, match="not the shortest"):
        state.put("node-9", signed)
    assert state.totals == before
    assert "node-9" not in state.nodes
    assert encode_share(campaign, decode_share(good, campaign)) == good


def test_the_median_of_groups_outlives_a_minority_that_lies(campaign, shares, table):
    liar = encode_share(campaign, np.full(len(decode_share(shares["node-0"], campaign)), 1 << 61))
    attacked = FederatedState(campaign, {**shares, "node-2": liar})
    score = attacked.model(groups=5, salt=b"s").score(*table)
    assert score > 0.6 > attacked.model(groups=1).score(*table)
    assert attacked.model().to_json() == attacked.model(groups=6).to_json(), "by default each node is a group"
    with pytest.raises(ValueError, match="groups must be from 1 to the 6 nodes"):
        attacked.model(groups=7)
    with pytest.raises(ValueError, match="a salt that the nodes do not know"):
        attacked.model(groups=2)
    backwards = dict(reversed(shares.items()))
    first, second, other = (
        FederatedState(campaign, one).model(groups=3, salt=salt).to_json()
        for one, salt in ((shares, b"x"), (backwards, b"x"), (shares, b"y"))
    )
    assert first == second != other, "groups depend on the salt, not on the order"


def test_the_median_of_three_is_the_one_between_in_every_parameter(schema, table):
    models = [FederatedNB(schema, epsilon=0.5, random_state=seed).fit(*table).model_ for seed in range(3)]
    found, kinds = _median(models), set()
    for place, likelihood in enumerate(found.likelihoods):
        kinds.add(type(likelihood))
        for name in ("mean", "variance") if isinstance(likelihood, GaussianLikelihood) else ("table",):
            values = np.sort([getattr(model.likelihoods[place], name) for model in models], axis=0)[1]
            assert np.array(getattr(likelihood, name)) == pytest.approx(
                values / (values.sum(0) if name == "table" else 1)
            )
    assert kinds == {GaussianLikelihood, DiscreteLikelihood}


def test_one_node_is_the_trainer_of_sufficient_statistics(schema, table):
    one = FederatedNB(schema, epsilon=0.5, random_state=3).fit(*table).model_
    other = SufficientStatisticsNB(schema, epsilon=0.5, random_state=3).fit(*table).model_
    assert (one.prior, one.likelihoods) == (other.prior, other.likelihoods)


@pytest.mark.parametrize("nodes", [3, 50])
@pytest.mark.parametrize(("variant", "groups"), [("sound", 1), ("sound", 3), ("published", 1)])
def test_many_nodes_learn_when_epsilon_is_large(schema, table, nodes, variant, groups):
    trainer = FederatedNB(schema, epsilon=500.0, nodes=nodes, groups=groups, variant=variant, random_state=1)
    fitted = trainer.fit(*table)
    reference = SufficientStatisticsNB(schema, epsilon=1e5, random_state=0).fit(*table).score(*table)
    assert fitted.score(*table) == pytest.approx(reference, abs=0.03)
    relation = (
        "add or remove one row" if variant == "sound" else "none: the noise follows each node's own largest value"
    )
    assert fitted.guarantee_.relation.startswith(relation)
    assert fitted.guarantee_.epsilon == (None if variant == "published" else 500.0)
    assert sum(fitted.budget_.values()) == pytest.approx(500.0)


def test_every_share_that_may_be_of_the_same_rows_costs_epsilon_again(campaign, shares):
    one, two, three = (shares[f"node-{i}"] for i in range(3))
    state = FederatedState(campaign)
    for node, share, epsilon in (
        ("a", one, 2),
        ("a", one, 2),
        ("b", two, 2),
        ("a", two, 4),
        ("b", one, 4),
        ("a", three, 6),
    ):
        state.put(node, share)
        assert state.guarantee.epsilon == epsilon
    state = FederatedState(campaign, {"a": one})
    for share, epsilon in ((one, 2), (two, 4)):
        state.withdraw("a")
        state.put("a", share)
        assert state.guarantee.epsilon == epsilon, "the same share again tells nothing new"
    model = state.model()
    assert model.guarantee_.epsilon == 4
    assert model.model_.training["replacements"] == 1
    assert model.guarantee_ == type(model).from_json(model.to_json()).guarantee_
    state = FederatedState(campaign, {"a": one}, {"a": Releases(3, 1), "gone": Releases(4)})
    assert state.model().model_.training["replacements"] == 4, "the most that any node has"
    assert state.model().guarantee_.epsilon == 10, "a node that withdrew has shown its shares, too"
    for node, share, epsilon in (("a", one, 10), ("gone", two, 12)):
        state.put(node, share)
        assert state.guarantee.epsilon == epsilon, "a state goes on from what was counted"


def test_a_share_of_other_rows_costs_nothing_again_and_the_guarantee_says_so(campaign, table, shares):
    frame, labels = table
    other = node_statistics(campaign, frame.tail(50).reset_index(drop=True), labels.tail(50), other_rows=True)
    plain = "add or remove one row"
    declared = f"{plain} of a node whose shares have other rows where it declared so"
    state = FederatedState(campaign)
    for share, epsilon, relation in (
        (other, 2, plain),  # A first share differs from nothing.
        (shares["node-0"], 4, plain),
        (encode_share(campaign, decode_share(shares["node-1"], campaign), other_rows=True), 4, declared),
        (other, 4, declared),
    ):
        state.put("a", share)
        assert (state.guarantee.epsilon, state.guarantee.relation) == (epsilon, relation)


def test_shares_of_other_rows_have_one_encoding_too(campaign, shares):
    vector = decode_share(shares["node-0"], campaign)
    share = encode_share(campaign, vector, other_rows=True)
    assert (decode_share(share, campaign) == vector).all()
    assert (has_other_rows(share), has_other_rows(shares["node-0"])) == (True, False)
    assert campaign_of(share) == campaign_of(shares["node-0"]) == campaign.id
    assert len(share) <= most_bytes(campaign)
    value = msgpack.unpackb(share)
    for wrong in (["other", *value[1:]], value[:3], [*value, True], [value[0], *value], [True, *value[1:]]):
        with pytest.raises(DocumentError):
            decode_share(msgpack.packb(wrong), campaign)
    for length in range(len(share)):
        with pytest.raises(DocumentError):
            decode_share(share[:length], campaign)


CAMPAIGN = Campaign.compile(draft(text("ward", "a", "b")))
VECTOR = np.arange(6)
SHARE = encode_share(CAMPAIGN, VECTOR)


@pytest.fixture
def scripted():
    """A server that gives the answers it is told, in turn: (status, headers, body). Notes what it was asked."""
    asked, answers = [], []

    def script(connection):
        head = until_blank_line(connection).decode()
        said = {name.lower(): value for name, value in re.findall(r"(.*?): (.*)\r\n", head)}
        asked.append(
            (*head.split()[:2], said.get("authorization"), exactly(connection, int(said.get("content-length", 0))))
        )
        status, headers, told = answers.pop(0)
        if status is not None:
            lines = [f"{name}: {value}\r\n" for name, value in {**headers, "Content-Length": len(told)}.items()]
            connection.sendall(f"HTTP/1.1 {status} X\r\n{''.join(lines)}Connection: close\r\n\r\n".encode() + told)

    with Scripted(script) as server:
        server.asked, server.answers = asked, answers
        server.to = Aggregator(f"http://127.0.0.1:{server.port}/", "ldp_secret")
        yield server


def problem(code, status, **headers):
    headers = {"Content-Type": "application/problem+json", **headers}
    return status, headers, json.dumps({"code": code, "title": "no"}).encode()


DONE = (200, {}, b'{"node": "north"}')


def test_a_retry_sends_the_same_bytes_and_waits_as_long_as_it_is_told(scripted):
    scripted.answers[:] = [(None, {}, b""), problem("overloaded", 503, **{"Retry-After": "7"}), DONE]
    waits = []
    assert send_share(scripted.to, SHARE, sleep=waits.append) == "north"
    path = f"/v1/campaigns/{CAMPAIGN.id}/statistics"
    assert scripted.asked == [("POST", path, "Bearer ldp_secret", SHARE)] * 3
    assert 0 <= waits[0] <= 1
    assert waits[1:] == [7]


def test_a_share_can_be_withdrawn_and_a_refusal_is_final_and_says_why(scripted):
    scripted.answers[:] = [(204, {}, b""), problem("campaign-closed", 409)]
    assert withdraw_share(scripted.to, CAMPAIGN.id) is None
    assert scripted.asked == [("DELETE", f"/v1/campaigns/{CAMPAIGN.id}/statistics", "Bearer ldp_secret", b"")]
    with pytest.raises(ConnectionError, match="campaign-closed: no"):
        send_share(scripted.to, SHARE)
    assert len(scripted.asked) == 2


def test_it_gives_up_after_some_tries_and_where_nobody_answers(scripted):
    scripted.answers[:] = [problem("store-unavailable", 503)] * ATTEMPTS
    with pytest.raises(ConnectionError, match=f"{ATTEMPTS} times; try again later: the same share counts once"):
        send_share(scripted.to, SHARE, sleep=(waits := []).append)
    assert (len(scripted.asked), len(waits)) == (ATTEMPTS, ATTEMPTS - 1)
    with pytest.raises(ConnectionError, match="no answer"):
        send_share(Aggregator("http://127.0.0.1:1", "t"), SHARE, sleep=lambda _: None)


def test_a_redirect_is_not_followed_and_somebody_elses_page_is_told(scripted):
    """Python's own client would go on from a 303 with a GET, and take the token along."""
    statuses = (301, 302, 303, 307, 308, 404)
    elsewhere = {"Location": f"{scripted.to.url}elsewhere"}
    scripted.answers[:] = [(status, elsewhere, b"<html>") for status in statuses] * 2
    for status in statuses:
        with pytest.raises(ConnectionError, match=f"status {status}, and no problem document"):
            send_share(scripted.to, SHARE)
    for status in statuses:
        with pytest.raises(ConnectionError, match=f"status {status}, and no problem document"):
            withdraw_share(scripted.to, CAMPAIGN.id)
    assert {path for _, path, *_ in scripted.asked} == {f"/v1/campaigns/{CAMPAIGN.id}/statistics"}
    assert [method for method, *_ in scripted.asked] == ["POST"] * 6 + ["DELETE"] * 6


def test_the_environments_proxy_is_for_elsewhere_and_never_for_loopback(scripted, monkeypatch):
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    scripted.answers[:] = [DONE]
    assert send_share(scripted.to, SHARE, sleep=lambda _: None) == "north"
    monkeypatch.setenv("http_proxy", scripted.to.url)
    scripted.answers[:] = [DONE]
    elsewhere = Aggregator("http://collect.invalid", "ldp_secret", allow_plain_http=True)
    assert send_share(elsewhere, SHARE, sleep=lambda _: None) == "north"
    assert scripted.asked[-1][1] == f"http://collect.invalid/v1/campaigns/{CAMPAIGN.id}/statistics"


def test_what_is_told_is_the_least_wait_and_no_wait_is_longer_than_a_minute(scripted, monkeypatch):
    monkeypatch.setattr(random, "uniform", lambda _, most: most)
    told = ({}, {"Retry-After": "1"}, {"Retry-After": "30"}, {"Retry-After": "100000"})
    scripted.answers[:] = [*(problem("overloaded", 503, **headers) for headers in told), DONE]
    waits = []
    send_share(scripted.to, SHARE, sleep=waits.append)
    assert waits == [1, 2, 30, 60]


@pytest.mark.parametrize("data", [b"", b"\x93", SHARE[:-1], b"\x90", encode_share(CAMPAIGN, VECTOR)[:3]])
def test_what_is_no_share_is_never_sent(scripted, data):
    with pytest.raises(DocumentError):
        send_share(scripted.to, data)
    assert scripted.asked == []


@pytest.mark.parametrize(
    ("url", "token", "message"),
    [
        ("http://collect.example.org", "t", "must be https"),
        ("http://127.0.0.1.example.org", "t", "must be https"),
        ("ftp://localhost", "t", "must be like https"),
        ("https://", "t", "must be like https"),
        ("https://a:b@collect.example.org", "t", "user name or password"),
        ("https://collect.example.org?x=1", "t", "without query"),
        *(
            ("https://collect.example.org", token, "one word of printable ASCII")
            for token in ("", " t", "t\r\nX: y", "schlüssel")
        ),
    ],
)
def test_what_is_no_token_or_an_address_that_none_must_be_sent_to_is_refused(url, token, message):
    with pytest.raises(ValueError, match=message):
        Aggregator(url, token)


def test_plain_http_is_for_loopback_or_on_request():
    for url in ("http://localhost:8080", "http://127.8.8.8", "http://[::1]:8080", "https://collect.example.org/base"):
        assert Aggregator(url, "t").url == url
    assert Aggregator("http://collect.example.org", "t", allow_plain_http=True).token == "t"
