"""Nodes over HTTP: shares in, replaced, withdrawn, refused; and the model that is derived from those there are."""

import asyncio
import hashlib
import itertools
import json
import time
from unittest.mock import AsyncMock, Mock

import numpy as np
import pandas as pd
import pytest
from drafts import draft, number, text

from ldp_aggregator.node_statistics import MEDIA_TYPE, Releases, decode_share, most_bytes
from ldp_aggregator.server import caches
from ldp_aggregator.service.rights import make_token
from ldp_aggregator.store import StoreError
from ldp_aggregator.store.contract import utc_now
from ldp_aggregator.trainers import FederatedState, encode_share, node_statistics
from ldp_client.answering import perturb
from ldp_protocols import Campaign

NODES = ("north", "south", "east", "west")

FEATURES = number("age", 0, 100, missing=True), text("ward", "a", "b", "c", missing=True)
DRAFT = draft(*FEATURES, label={"name": "ill", "classes": ["yes", "no"]}, privacy={"epsilon": 2})


@pytest.fixture(scope="module")
def campaign():
    return Campaign.compile(DRAFT)


@pytest.fixture(scope="module")
def shares(campaign):
    made = {}
    for seed, node in enumerate(NODES):
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame({"age": rng.uniform(0, 100, 50), "ward": rng.choice(["a", "b", "c"], 50)})
        made[node] = node_statistics(campaign, frame, pd.Series(rng.choice(["yes", "no"], 50)))
    return made


class Nodes:
    """A server with a federated campaign, and the requests of its nodes."""

    def __init__(self, server, campaign):
        self.server, self.campaign = server, campaign
        self.url = f"{server.public}/v1/campaigns/{campaign.id}"

    async def ask(self, method, node, body=None, campaign=None, **headers):
        url = f"{self.server.public}/v1/campaigns/{(campaign or self.campaign).id}/statistics"
        return await self.server.ask(method, url, node, data=body, headers={"Content-Type": MEDIA_TYPE} | headers)

    async def send(self, node, share, **headers):
        return await self.ask("POST", node, share, **headers)

    async def withdraw(self, node):
        assert (await self.ask("DELETE", node)).status == 204

    async def model(self):
        """Its text and its tag."""
        answer = await self.server.ask("GET", f"{self.url}/model")
        assert answer.status == 200, answer.content
        return answer.content.decode(), answer.headers["ETag"]

    async def has_no_model(self):
        return (await self.server.ask("GET", f"{self.url}/model")).refused == (404, "no-model")


async def federate(server, campaign):
    await server.store.create_campaign(campaign, federated=True)
    for name in NODES:
        server.tokens[name], stored = make_token(name, "node", utc_now())
        await server.store.add_token(stored)
    return Nodes(server, campaign)


@pytest.fixture
async def nodes(server, campaign):
    return await federate(server, campaign)


async def test_the_model_is_that_of_the_merged_shares_to_the_byte_in_every_order(nodes, campaign, shares):
    merged = FederatedState(campaign, shares).model().to_json()
    seen = set()
    for order in itertools.islice(itertools.permutations(NODES), 0, 24, 7):
        for node in order:
            for _ in range(2):
                assert (await nodes.send(node, shares[node])).json == {"node": node}, "a retry is a success, too"
        seen.add(await nodes.model())
        for node in order:
            await nodes.withdraw(node)
        assert await nodes.has_no_model()
    assert seen == {(merged, f'"{hashlib.sha256(merged.encode()).hexdigest()}"')}


async def test_the_model_is_revalidated_and_derived_once_until_a_share_changes(nodes, shares, monkeypatch):
    works = caches.derive_model

    def slowly(*given):
        time.sleep(0.1)  # Everybody has asked meanwhile.
        return works(*given)

    derive = Mock(side_effect=slowly)
    monkeypatch.setattr(caches, "derive_model", derive)
    await nodes.send("north", shares["north"])
    first = await asyncio.gather(*(nodes.model() for _ in range(8)))
    await nodes.send("north", shares["north"])
    _, tag = await nodes.model()
    answer = await nodes.server.ask("GET", f"{nodes.url}/model", headers={"If-None-Match": tag})
    assert (answer.status, answer.content) == (304, b"")
    assert (len(set(first)), derive.call_count) == (1, 1)
    await nodes.send("south", shares["south"])
    assert (await nodes.model())[1] != tag
    nodes_of = [[member.node for member in call.args[1].members] for call in derive.call_args_list]
    assert nodes_of == [["north"], ["north", "south"]]


async def test_the_model_says_what_every_share_that_was_ever_sent_costs_and_stays_when_the_campaign_is_closed(
    nodes, campaign, shares
):
    """What was read in between does not matter."""
    for sent in ("south", "north", "south", "north"):
        await nodes.send("north", shares[sent])
        await nodes.model()
    await nodes.send("east", shares["east"])
    await nodes.withdraw("east")
    releases = {"north": Releases(1), "east": Releases(0)}
    expected = FederatedState(campaign, {"north": shares["north"]}, releases).model()
    assert expected.guarantee_.epsilon == 4
    assert (await nodes.model())[0] == expected.to_json()
    await nodes.server.store.close_campaign(campaign.id)
    assert (await nodes.model())[0] == expected.to_json()
    assert await nodes.server.store.check() == []


async def test_what_is_no_share_is_refused_and_changes_nothing(nodes, campaign, shares):
    good = shares["north"]
    size = len(decode_share(good, campaign))
    longest = encode_share(campaign, np.full(size, -(1 << 62)))
    assert len(longest) <= most_bytes(campaign)
    assert (await nodes.send("north", longest)).refused == (400, "impossible-share")
    assert (await nodes.send("north", good)).status == 200
    before = await nodes.model()
    bodies = [b"", b"\x00", good + b"\x00", *(good[:length] for length in range(0, len(good), 7))]
    bodies.append(encode_share(Campaign.compile({**DRAFT, "title": "Other"}), np.zeros(size, dtype=np.int64)))
    for body in bodies:
        assert (await nodes.send("north", body)).refused == (400, "malformed-share"), body
    assert (await nodes.send("north", b"x" * (most_bytes(campaign) + 1))).refused == (413, "body-too-large")
    as_json = await nodes.send("north", good, **{"Content-Type": "application/json"})
    assert as_json.refused == (415, "wrong-media-type")
    assert await nodes.model() == before


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_only_a_node_is_listened_to(nodes, shares, method):
    await nodes.send("north", shares["north"])
    before = await nodes.model()
    for scope in ("admin", "collector", "relay"):
        assert (await nodes.ask(method, scope, shares["south"])).refused == (403, "wrong-scope")
    assert (await nodes.ask(method, "", b"")).refused == (401, "missing-token")
    await nodes.server.store.revoke_token("north")
    assert (await nodes.ask(method, "north", shares["south"])).refused == (401, "wrong-token")
    assert await nodes.model() == before, "what a node sent before its token was revoked stays"


async def test_a_share_that_fails_or_whose_token_is_revoked_on_its_way_changes_nothing(nodes, shares, monkeypatch):
    put = nodes.server.store.put_share

    async def late(*what, **more):
        await nodes.server.store.revoke_token("north")
        return await put(*what, **more)

    full = AsyncMock(side_effect=StoreError("disk full"))
    for failure, refused in ((full, (503, "store-unavailable")), (late, (401, "wrong-token"))):
        with monkeypatch.context() as patched:
            patched.setattr(nodes.server.store, "put_share", failure)
            assert (await nodes.send("north", shares["north"])).refused == refused
        assert await nodes.has_no_model()
    assert (await nodes.send("south", shares["south"])).status == 200


async def test_a_nodes_next_token_replaces_and_withdraws_the_share_of_its_first_which_opens_nothing_then(nodes, shares):
    store, server = nodes.server.store, nodes.server
    await nodes.send("north", shares["north"])
    server.tokens["next"], stored = make_token("next", "node", utc_now())
    assert await store.rotate_token("north", stored)
    for method in ("POST", "DELETE"):
        assert (await nodes.ask(method, "north", shares["east"])).refused == (401, "wrong-token")
    answer = await nodes.send("next", shares["south"])
    assert (answer.status, answer.json) == (200, {"node": "north"})
    [member] = (await store.shares(nodes.campaign.id)).members
    assert (member.node, member.share) == ("north", shares["south"])
    await nodes.withdraw("next")
    assert (await store.shares(nodes.campaign.id)).members == ()


async def test_a_token_that_ends_on_the_way_is_refused_with_what_would_be_right(nodes, shares):
    nodes.server.store.put_share = AsyncMock(return_value="wrong-token")
    nodes.server.store.withdraw_share = AsyncMock(return_value="wrong-token")
    for method in ("POST", "DELETE"):
        answer = await nodes.ask(method, "north", shares["north"])
        assert (answer.refused, answer.headers["WWW-Authenticate"]) == ((401, "wrong-token"), "Bearer")


async def test_a_federated_campaign_has_no_reports_no_estimates_and_nothing_to_train(nodes, shares):
    server, campaign = nodes.server, nodes.campaign
    reports = perturb(campaign, {"age": 3, "ward": "a"}, "yes")
    assert await server.refused(campaign, reports) == (409, "takes-shares")
    await nodes.send("north", shares["north"])
    estimates = await server.ask("GET", f"{nodes.url}/estimates", "collector")
    assert estimates.refused == (409, "takes-shares")
    trained = await server.ask("POST", f"/admin/v1/campaigns/{campaign.id}/train", "admin")
    assert trained.refused == (409, "nothing-to-train")
    assert "is federated" in trained.json["detail"]
    assert (await server.ask("GET", f"{nodes.url}/model?version=1")).refused == (404, "no-model")
    [state] = (await server.ask("GET", "/admin/v1/campaigns", "admin")).json["campaigns"]
    assert (state["federated"], state["shares"], state["reports"]) == (True, 1, 0)


def agreed(campaign, shares, **federation):
    """The campaign with a federation in its document, and the shares for it."""
    other = Campaign.compile({**DRAFT, "federation": federation})
    return other, {node: encode_share(other, decode_share(share, campaign)) for node, share in shares.items()}


async def test_the_documents_groups_give_the_median_and_no_model_before_there_is_a_node_for_each(
    server, campaign, shares
):
    campaign, shares = agreed(campaign, shares, groups=3)
    nodes = await federate(server, campaign)
    for node in NODES[:2]:
        await nodes.send(node, shares[node])
    assert await nodes.has_no_model()
    assert b"2 nodes have sent" in (await server.ask("GET", f"{nodes.url}/model")).content
    for node in NODES[2:]:
        await nodes.send(node, shares[node])
    salt = (await server.store.shares(campaign.id)).salt
    expected = FederatedState(campaign, shares).model(groups=3, salt=salt).to_json()
    assert (await nodes.model())[0] == expected
    assert expected != FederatedState(campaign, shares).model(groups=1).to_json()
    assert salt.hex() not in expected


async def test_a_node_replaces_its_share_as_often_as_the_document_allows_and_no_other_loses_more(
    server, campaign, shares
):
    campaign, shares = agreed(campaign, shares, replacements=1)
    nodes = await federate(server, campaign)
    await nodes.send("south", shares["south"])
    for sent in ("north", "east", "north", "east"):
        assert (await nodes.send("north", shares[sent])).status == 200
    assert (await nodes.send("north", shares["west"])).refused == (409, "replaced-before")
    other_rows = encode_share(campaign, decode_share(shares["west"], campaign), other_rows=True)
    await nodes.withdraw("north")
    assert (await nodes.send("north", shares["west"])).refused == (409, "replaced-before")
    assert (await nodes.send("north", other_rows)).status == 200
    assert (await nodes.send("north", shares["east"])).status == 200
    stated = json.loads((await nodes.model())[0])["training"]["guarantee"]
    assert (stated["epsilon"], stated["of_nodes"]) == (4, [[2, 1], [4, 1]])
    assert await server.store.check() == []


async def test_two_replacements_that_meet_are_not_both_kept(server, campaign, shares):
    campaign, shares = agreed(campaign, shares, replacements=1)
    nodes = await federate(server, campaign)
    await nodes.send("north", shares["north"])
    answers = await asyncio.gather(*(nodes.send("north", shares[one]) for one in ("south", "east", "west")))
    assert sorted(one.status for one in answers) == [200, 409, 409]


async def test_campaigns_of_either_kind_are_created_over_http(server):
    async def create(title, **query):
        body, headers = json.dumps({**DRAFT, "title": title}), {"Content-Type": "application/json"}
        answer = await server.ask("POST", "/admin/v1/campaigns", "admin", params=query, data=body, headers=headers)
        return answer.status, answer.json.get("code", answer.json.get("id"))

    status, campaign_id = await create("One", federated="true")
    assert (status, (await server.store.state(campaign_id)).federated) == (201, True)
    assert await create("One", federated="true") == (200, campaign_id)
    assert await create("One") == (200, campaign_id)
    status, campaign_id = await create("Two", federated="false")
    assert (status, (await server.store.state(campaign_id)).federated) == (201, False)
    assert await create("Two", federated="true") == (409, "takes-reports")
    assert await create("Three", federated="yes") == (400, "malformed-query")
    assert await create("Three", federated="true", max_reports="5") == (400, "invalid-draft")
