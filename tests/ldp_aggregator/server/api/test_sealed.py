"""The gateway: what it opens, what it tells in the open, and what a batch of sealed uploads counts for."""

import io
import json

import pytest
from cells import cell_report, cells_of, reports_of
from drafts import draft
from drafts import text as values
from issuing import issuer, shown_for

from ldp_aggregator.server.gateway import GatewayKeys
from ldp_aggregator.server.intake import BATCH_HEADER
from ldp_aggregator.server.problems import OHTTP_KEY
from ldp_aggregator.service.rights import make_token
from ldp_aggregator.service.signing import gateway_of, read_gateway_seeds
from ldp_aggregator.store.contract import UNAVAILABLE, Outcome, StoreError, utc_now
from ldp_client.network.sealed import Sealed
from ldp_protocols import Campaign, LdpError, Report, encode_upload
from ldp_protocols.document.gateway import Gateway
from ldp_protocols.oblivious import (
    BATCH_TYPE,
    LENGTH_HEADER,
    REQUEST_TYPE,
    RESPONSE_TYPE,
    BinaryRequest,
    decode_response,
    encode_request,
)
from ldp_protocols.tokens import ANSWERS_TYPE, read_credentials
from ldp_protocols.wire import MEDIA_TYPE

TYPED = (("content-type", MEDIA_TYPE),)
LINE = "ldp-bayes gateway key 1: {}\n"
OLDER, NEWER = (LINE.format(letter * 42 + "A") for letter in "AB")


@pytest.fixture
def key(tmp_path):
    path = tmp_path / "gateway.key"
    path.touch(0o600)
    path.write_text(OLDER + NEWER)
    return path


@pytest.fixture
def gateway(key):
    return gateway_of(read_gateway_seeds(key)[-1])


@pytest.fixture
async def server(request, serving, key):
    async with serving(gateway_key=key, **getattr(request, "param", {})) as made:
        yield made


@pytest.fixture
async def campaign(server, gateway):
    return await server.publish(64, gateway=gateway.to_json())


@pytest.fixture
def sealed(gateway):
    """An upload of reports, or of bytes, to a campaign, sealed."""

    def made(campaign, members, headers=TYPED, *, method="POST", path=None, key=None, beside=1):
        body = members if isinstance(members, bytes) else encode_upload(reports_of(campaign, members), campaign)
        path = f"/v1/campaigns/{campaign.id}/reports" if path is None else path
        inside = BinaryRequest(method, "https", "x", path, headers, body)
        return Sealed(key or gateway, encode_request(inside, beside=beside))

    return made


@pytest.fixture
def post(server):
    async def posted(body, **headers):
        headers = {"Content-Type": REQUEST_TYPE} | headers
        return await server.ask("POST", server.public + "/v1/ohttp", data=body, headers=headers)

    return posted


@pytest.fixture
def ask(post):
    """The answer inside the answer to a sealed request."""

    async def asked(one, **headers):
        answer = await post(one.body, **headers)
        assert (answer.status, answer.headers["Content-Type"]) == (200, RESPONSE_TYPE)
        return decode_response(one.open(answer.content))

    return asked


@pytest.fixture
def batch(server):
    """The answer to a relay's batch of sealed uploads."""

    async def sent(bodies, scope="relay", length=None, **headers):
        length = len(bodies[0]) if length is None else length
        headers = {"Content-Type": BATCH_TYPE, LENGTH_HEADER: str(length)} | headers
        url = server.public + "/v1/ohttp/batch"
        return await server.ask("POST", url, scope, data=b"".join(bodies), headers=headers)

    return sent


async def test_an_upload_is_opened_counted_and_answered_with_a_seal_of_one_length(server, campaign, sealed, post, ask):
    first = await ask(sealed(campaign, [3]))
    assert (first.status, first.body) == (200, b'{"rejected": []}')
    assert first.headers == (("content-type", "application/json"),)
    assert (await ask(sealed(campaign, [(3, 4)]))).body == b'{"rejected": []}'
    impossible = await ask(sealed(campaign, [(6, 64)]))
    assert json.loads(impossible.body)["rejected"][0][1] == "index-out-of-range"
    assert (await cells_of(server.store, campaign))[:5] == [0, 0, 0, 1, 0]
    lengths = {len((await post(sealed(campaign, [one]).body)).content) for one in (3, (3, 4), 5, (6, 64))}
    refused = (sealed(campaign, b"x"), sealed(campaign, [6, 7]), sealed(campaign, [6], method="GET"))
    lengths |= {len((await post(one.body)).content) for one in refused}
    assert len(lengths) == 1, "a relay does not see who was refused"


async def test_what_is_sent_again_is_counted_once_and_answered_with_another_seal_by_an_older_key_too(
    server, campaign, key, sealed, post
):
    for number, seed in enumerate(read_gateway_seeds(key)):
        one = sealed(campaign, [number], key=gateway_of(seed))
        answers = [await post(one.body) for _ in range(3)]
        assert {decode_response(one.open(answer.content)).body for answer in answers} == {b'{"rejected": []}'}
        assert len({answer.content for answer in answers}) == 3
    assert await cells_of(server.store, campaign, 3) == [1, 1, 0]


async def test_every_byte_of_a_sealed_upload_that_is_changed_or_missing_is_refused_in_the_open(
    server, campaign, sealed, post
):
    body = sealed(campaign, [1]).body
    for place in range(len(body)):
        for wrong in (body[:place], body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]):
            answer = await post(wrong)
            assert answer.status == 400
            assert answer.json["code"] in ("malformed-sealed", "unknown-gateway-key"), place
    assert (await post(body + b"\0")).refused == (400, "malformed-sealed")
    assert sum(await cells_of(server.store, campaign)) == 0


async def test_a_short_one_is_opened_at_once_and_a_long_one_or_that_of_a_page_in_its_turn(
    server, campaign, sealed, ask, monkeypatch
):
    turns = []

    async def noting(keys, body, in_turn=GatewayKeys.open_in_turn):
        turns.append(len(body))
        return await in_turn(keys, body)

    monkeypatch.setattr(GatewayKeys, "open_in_turn", noting)
    ways = {"short": (1, {}), "long": (20_000, {}), "a page's": (1, {"Origin": "https://page.example"})}
    answers = {}
    for number, (way, (beside, headers)) in enumerate(ways.items()):
        wrong = sealed(campaign, b"x", beside=beside)
        answers[way] = (
            await ask(sealed(campaign, [number], beside=beside), **headers),
            await ask(wrong, **headers),
        )
        assert len(turns) == 2 * number
    assert answers["short"] == answers["long"] == answers["a page's"]
    assert await cells_of(server.store, campaign, 4) == [1, 1, 1, 0]
    told = (await server.ask("GET", server.operations + "/metrics")).content.decode()
    wanted = 'ldp_requests_total{method="POST",route="/v1/ohttp",status="200"} 6.0'
    assert wanted in told, [line for line in told.splitlines() if "ohttp" in line]


@pytest.mark.parametrize("headers", [{}, {"Origin": "https://page.example"}], ids=["at once", "a page"])
async def test_who_has_no_key_refuses_what_is_sealed_in_the_open(campaign, sealed, post, monkeypatch, headers):
    monkeypatch.setattr(GatewayKeys, "check_open", lambda _, check=GatewayKeys.check_open: check(GatewayKeys()))
    assert (await post(sealed(campaign, [1]).body, **headers)).refused == (400, "unknown-gateway-key")


async def test_another_key_is_told_as_rfc_9458_says(server, campaign, sealed, post, gateway):
    other = Gateway(gateway.key_id ^ 1, gateway.public_key, gateway.aeads)
    answer = await post(sealed(campaign, [1], key=other).body)
    assert answer.refused == (400, "unknown-gateway-key")
    assert answer.json["type"] == OHTTP_KEY == "https://iana.org/assignments/http-problem-types#ohttp-key"
    assert answer.headers["Content-Type"].startswith("application/problem+json")


async def test_the_outside_is_held_to_its_type_and_length(campaign, sealed, post):
    assert (await post(sealed(campaign, [1]).body, **{"Content-Type": MEDIA_TYPE})).refused == (415, "wrong-media-type")
    assert (await post(io.BytesIO(bytes(5 << 20)))).refused == (413, "body-too-large")


@pytest.mark.parametrize(
    ("status", "code", "changes"),
    [
        (404, "not-found", {"path": "/v1/campaigns"}),
        (404, "not-found", {"path": "/admin/v1/campaigns"}),
        (404, "not-found", {"path": f"/v1/campaigns/{'A' * 43}/reports/more"}),
        (404, "not-found", {"path": f"/v1/campaigns/{'A' * 43}/reports?batch=5"}),
        (404, "not-found", {"path": f"/v1/campaigns/{'A' * 44}/reports"}),
        (405, "method-not-allowed", {"method": "GET"}),
        (415, "wrong-media-type", {"headers": ()}),
        (415, "compressed-body", {"headers": (*TYPED, ("content-encoding", "gzip"))}),
        (415, "compressed-body", {"headers": (*TYPED, ("content-encoding", "identity"))}),
        (400, "malformed-request", {"headers": (*TYPED, ("expect", "100-continue"))}),
        (400, "malformed-request", {"headers": (*TYPED, ("expect", "anything"))}),
        (404, "unknown-campaign", {"path": f"/v1/campaigns/{'A' * 43}/reports"}),
        (401, "wrong-token", {"headers": (*TYPED, ("authorization", "Bearer ldp_x"), ("ldp-relay-batch", "5"))}),
        (400, "malformed-upload", {"members": b"x"}),
        (413, "too-many-reports", {"members": [1, 2]}),
    ],
)
async def test_a_problem_of_what_is_inside_is_told_inside(status, code, changes, server, campaign, sealed, ask):
    """Also where the campaign is known already, and nobody has to be asked about most uploads."""
    for counted in range(2):
        answer = await ask(sealed(campaign, **{"members": [1]} | changes))
        assert (answer.status, json.loads(answer.body)["code"]) == (status, code)
        assert dict(answer.headers)["content-type"] == "application/problem+json"
        assert sum(await cells_of(server.store, campaign)) == counted
        assert (await ask(sealed(campaign, [9]))).status == 200


async def test_what_is_sealed_and_no_message_is_told_inside(gateway, campaign, ask):
    answer = await ask(Sealed(gateway, b"\x09"))
    assert (answer.status, json.loads(answer.body)["code"]) == (400, "malformed-request")


async def test_the_headers_inside_open_what_is_not_open_to_everybody_and_so_does_the_relays_token_of_a_batch(
    server, gateway, sealed, ask, batch
):
    for need in ("device", "relay"):
        campaign = await server.publish(64, gateway=gateway.to_json(), uploads_need=need, title=need)
        assert (await ask(sealed(campaign, [1]))).status == 401
        token, path = ("authorization", server.bearer(need)["Authorization"]), f"/b/v1/campaigns/{campaign.id}/reports"
        assert (await ask(sealed(campaign, [1], (*TYPED, token), path=path))).status == 200, (
            "also behind a proxy's path"
        )
    assert (await batch([sealed(campaign, [2]).body])).json == {"taken": 1}


@pytest.mark.parametrize(
    ("members", "word", "times", "hides"),
    [
        (range(10), 10, 1, (10, 10)),
        (range(10), 10, 3, (10, 10)),
        ((*range(10), 3, 3), 12, 1, (10, 10)),
        (range(10), None, 1, (None, 0)),
    ],
    ids=["once", "again and again", "one device three times", "without a word for it"],
)
async def test_a_batch_hides_the_devices_in_it_and_says_no_more_than_how_many_were_taken(
    server, campaign, sealed, batch, members, word, times, hides
):
    bodies = [sealed(campaign, [one]).body for one in members]
    for _ in range(times):
        answer = await batch(bodies, **({"LDP-Relay-Batch": str(word)} if word else {}))
        assert (answer.status, answer.json) == (200, {"taken": len(bodies)})
    arrivals = (await server.store.state(campaign.id)).arrivals
    assert (arrivals.least_batch, arrivals.vouched) == hides
    assert await cells_of(server.store, campaign, 11) == [1] * 10 + [0]


async def test_what_is_no_upload_is_left_out_of_a_batch_and_of_the_crowd(server, campaign, sealed, batch):
    good = [sealed(campaign, [one]).body for one in range(10)]
    length = len(good[0])
    other = await server.publish(64, title="C")
    wrong = [
        bytes(length),
        good[0][:-1] + bytes([good[0][-1] ^ 1]),
        sealed(campaign, [11], method="TOSP").body,
        sealed(campaign, [12], path=f"/v1/campaigns/{'A' * 43}/reports").body,
        sealed(campaign, bytes(len(encode_upload(reports_of(campaign, [1]), campaign)))).body,
        sealed(other, [13]).body,
    ]
    assert {len(body) for body in wrong} == {length}
    answer = await batch([*wrong, *good], **{"LDP-Relay-Batch": "16"})
    assert answer.json == {"taken": 11}
    assert (await server.store.state(campaign.id)).arrivals.least_batch == 10
    assert sum(await cells_of(server.store, campaign)) == 10
    assert sum(await cells_of(server.store, other)) == 1


async def test_a_draft_is_published_over_http_where_its_key_is_here_or_said_to_be_elsewhere(server, gateway):
    async def create(named, **query):
        body = json.dumps(draft(values("age", "young", "old"), gateway=named.to_json())).encode()
        headers = {"Content-Type": "application/json"}
        answer = await server.ask("POST", "/admin/v1/campaigns", "admin", params=query, data=body, headers=headers)
        return answer.status

    assert await create(gateway_of(bytes([5]) * 32)) == 400
    assert await create(gateway_of(bytes([5]) * 32), elsewhere="true") == 201
    assert await create(gateway) == 201


async def test_what_a_batch_could_not_take_is_counted_by_its_code(server, campaign, sealed, batch):
    good = sealed(campaign, [1]).body
    other_key = bytes([good[0] ^ 1]) + good[1:]
    assert (await batch([good, other_key, bytes(len(good))])).json == {"taken": 1}
    assert 'ldp_refusals_total{code="unknown-gateway-key"} 2.0' in await server.metrics()


async def test_garbage_around_one_upload_lowers_what_is_stated_of_no_other_batch(server, campaign, sealed, batch):
    good = [sealed(campaign, [one]).body for one in range(12)]
    garbage = [body[:-1] + bytes([body[-1] ^ 1]) for body in good[:9]]
    for bodies in (good[:10], [good[10], *garbage], [*good[:9], good[11]]):
        assert (await batch(bodies, **{"LDP-Relay-Batch": "10"})).status == 200
        arrivals = (await server.store.state(campaign.id)).arrivals
        assert arrivals.least_batch == (10 if arrivals.reports < 12 else 1), "and what comes again hides nobody either"
    assert (arrivals.reports, arrivals.otherwise) == (12, 1)


async def test_a_batch_needs_a_relays_token_and_a_length_that_divides_it(campaign, sealed, batch):
    body = sealed(campaign, [1]).body
    assert (await batch([body], scope="")).refused == (401, "missing-token")
    assert (await batch([body], scope="device")).refused == (403, "wrong-scope")
    for length in ("", "x", "-5", "54", len(body) + 1, len(body) - 1, "9" * 10):
        assert (await batch([body], length=length)).refused == (400, "malformed-request"), length
    assert (await batch([b""], length=100)).refused == (400, "malformed-request")
    assert (await batch([body], **{"LDP-Relay-Batch": "x"})).refused == (400, "malformed-request")


async def test_a_request_of_the_least_length_is_looked_at_and_is_no_upload(batch):
    answer = await batch([bytes(55)] * 2)
    assert (answer.status, answer.json) == (200, {"taken": 0})


async def test_of_a_campaign_that_asks_devices_for_a_token_a_batch_counts_those_that_show_one(
    server, gateway, sealed, batch
):
    campaign = await server.publish(64, gateway=gateway.to_json(), uploads_need="device")
    shown = [("authorization", server.bearer(scope)["Authorization"]) for scope in ("device", "node")]
    for number in range(2):  # Also where what it asks for is known.
        one = number * 3
        bodies = [sealed(campaign, [one], (*TYPED, shown[0])), sealed(campaign, [one + 1], (*TYPED, shown[1]))]
        bodies.append(sealed(campaign, [one + 2]))
        assert [(await batch([body.body])).json for body in bodies] == [{"taken": 1}, {"taken": 0}, {"taken": 0}]
    assert await cells_of(server.store, campaign, 6) == [1, 0, 0, 1, 0, 0]


async def test_a_batch_of_answers_to_several_questions_counts_in_whatever_order_they_came(
    server, gateway, sealed, batch
):
    asked = draft(values("u", "1", "2"), values("v", "1", "2"), gateway=gateway.to_json())
    campaign = Campaign.compile({**asked, "privacy": {"epsilon": 1.0, "discrete": "de"}})
    await server.store.create_campaign(campaign)
    reports = [
        Report(question, cell_report(campaign, number).id, b"\0") for number, question in enumerate([2, 0, 1, 2])
    ]
    bodies = [sealed(campaign, encode_upload([one], campaign)).body for one in reports]
    assert len({len(body) for body in bodies}) == 1
    assert (await batch(bodies, **{"LDP-Relay-Batch": "4"})).json == {"taken": 4}
    assert (await server.store.tally(campaign.id)).n.tolist() == [1, 1, 2]
    assert (await server.store.state(campaign.id)).arrivals.least_batch == 4


async def test_a_relays_token_opens_only_its_campaigns(server, campaign, sealed, batch):
    other = await server.publish(64, title="C")
    token, stored = make_token("limited", "relay", utc_now(), campaigns=[campaign.id])
    await server.store.add_token(stored)
    bodies = [sealed(campaign, [1]).body, sealed(other, [2]).body]
    for word in ({}, {"LDP-Relay-Batch": "2"}):
        answer = await batch(bodies, scope="", Authorization=f"Bearer {token}", **word)
        assert answer.json == {"taken": 1}
    assert sum(await cells_of(server.store, other)) == 0


async def admits(_campaign_id, headers):
    return headers.get("x-pass") == "right"


@pytest.mark.parametrize("server", [{"admission": f"{__name__}:admits"}], indirect=True)
async def test_who_is_not_admitted_by_what_is_inside_is_not_in_a_batch_either(server, campaign, sealed, batch):
    passes = (("x-pass", "right"), ("x-pass", "wrong"))
    bodies = [sealed(campaign, [one], (*TYPED, passes[one % 2])).body for one in range(10)]
    assert (await batch(bodies, **{"LDP-Relay-Batch": "10"})).json == {"taken": 5}
    assert await cells_of(server.store, campaign, 10) == [1, 0] * 5
    assert (await server.store.state(campaign.id)).arrivals.least_batch == 5


async def test_of_a_campaign_with_an_issuer_a_batch_counts_what_shows_its_own_token(server, gateway, sealed, batch):
    campaign = await server.publish(64, gateway=gateway.to_json(), issuer=issuer())
    tokens = [shown_for(campaign, report) for report in reports_of(campaign, range(3))]
    bodies = [
        sealed(campaign, [number], (*TYPED, ("authorization", tokens[shown]))).body
        for number, shown in ((0, 0), (1, 0), (2, 1))
    ]
    answer = await batch(bodies)
    assert (answer.status, answer.json) == (200, {"taken": 1})
    assert await cells_of(server.store, campaign, 3) == [1, 0, 0]


async def test_a_single_one_shows_its_token_inside_and_without_it_counts_nothing(server, gateway, sealed, ask):
    campaign = await server.publish(64, gateway=gateway.to_json(), issuer=issuer())
    token = ("authorization", shown_for(campaign, reports_of(campaign, [1])[0]))
    for headers, status in ((TYPED, 401), ((*TYPED, token), 200)):
        assert (await ask(sealed(campaign, [1], headers))).status == status
    assert (await ask(sealed(campaign, [2], (*TYPED, token)))).status == 401
    assert await cells_of(server.store, campaign, 3) == [0, 1, 0]


@pytest.mark.parametrize("server", [{"uploads_per_second": 0.4}], indirect=True)
async def test_what_is_sealed_is_held_to_the_campaigns_rate_and_to_what_a_device_can_have_to_say(
    server, campaign, sealed, ask
):
    long = await ask(sealed(campaign, bytes(9000)))
    assert (long.status, json.loads(long.body)["code"]) == (413, "body-too-large")
    assert [(await ask(sealed(campaign, [one]))).status for one in range(4)] == [200, 200, 429, 429]
    assert await cells_of(server.store, campaign, 4) == [1, 1, 0, 0]


async def test_a_campaign_that_opens_later_or_may_open_again_has_the_relay_come_again_and_a_sealed_one_has_not(
    server, gateway, sealed, batch
):
    later = await server.publish(64, gateway=gateway.to_json(), opens="2999-01-01T00:00:00Z")
    assert (await batch([sealed(later, [1]).body])).refused == (409, "campaign-not-open")
    now = await server.publish(64, gateway=gateway.to_json())
    assert (await batch([sealed(later, [1]).body, sealed(now, [1]).body])).json == {"taken": 1}
    assert (await server.ask("POST", f"/admin/v1/campaigns/{now.id}/close", "admin")).status < 300
    assert (await batch([sealed(now, [2]).body])).refused == (409, "campaign-closing")
    await server.store.seal_campaign(now.id, at_once=True)
    assert (await batch([sealed(now, [2]).body])).json == {"taken": 0}


def failing(count, campaign, fault):
    """A store's counting, in which one campaign has this fault."""

    async def counting(submissions):
        if all(one.campaign.id != campaign.id for one in submissions):
            return await count(submissions)
        if isinstance(fault, Exception):
            raise fault
        return [Outcome(refused=fault)] * len(submissions)

    return counting


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (UNAVAILABLE, (503, "store-unavailable")),
        (StoreError("no space"), (503, "store-unavailable")),
        (ValueError("a bug"), (500, "internal-error")),
    ],
    ids=["refused for one campaign", "no space", "a bug"],
)
@pytest.mark.parametrize("failed", [0, 1], ids=["the first", "the second"])
async def test_where_one_campaign_of_a_batch_fails_the_relay_comes_again_and_nothing_is_lost_or_counted_twice(
    server, gateway, sealed, batch, monkeypatch, fault, told, failed
):
    two = [await server.publish(64, gateway=gateway.to_json(), title=title) for title in "ab"]
    bodies = [sealed(two[number % 2], [number]).body for number in range(8)]
    with monkeypatch.context() as planted:
        planted.setattr(server.store, "count", failing(server.store.count, two[failed], fault))
        answer = await batch(bodies, **{"LDP-Relay-Batch": "8"})
        assert answer.refused == told
        assert told[0] == 500 or 1 <= int(answer.headers["Retry-After"]) <= 8
        assert not any(await cells_of(server.store, two[failed]))
    answer = await batch(bodies, **{"LDP-Relay-Batch": "8"})
    assert (answer.status, answer.json) == (200, {"taken": 8})
    assert await cells_of(server.store, two[0], 8) == [1, 0] * 4
    assert await cells_of(server.store, two[1], 8) == [0, 1] * 4
    assert [(await server.store.state(one.id)).arrivals.least_batch for one in two] == [4, 4]


@pytest.mark.parametrize("server", [{"limits": {"reports_per_upload": 3}}], indirect=True)
async def test_a_batch_with_too_many_uploads_to_one_campaign_is_sent_again_in_halves(server, gateway, sealed, batch):
    two = [await server.publish(64, gateway=gateway.to_json(), title=title) for title in "ab"]
    bodies = [sealed(two[number > 0], [number]).body for number in range(5)]
    assert (await batch(bodies)).refused == (413, "too-many-reports")
    assert [(await batch(half)).json for half in (bodies[:2], bodies[2:])] == [{"taken": 2}, {"taken": 3}]
    assert await cells_of(server.store, two[0], 5) == [1, 0, 0, 0, 0]
    assert await cells_of(server.store, two[1], 5) == [0, 1, 1, 1, 1]


async def test_a_key_opens_what_is_sealed_with_a_cipher_that_it_lists_and_nothing_else(server, campaign, gateway, post):
    """A document that names fewer ciphers than a library knows means it: 2 and 3 are AES-256-GCM and ChaCha20."""
    listed, others = set(gateway.aeads), {1, 2, 3} - set(gateway.aeads)
    assert listed
    assert others
    for aead in sorted(listed | others):
        answer = await post(Sealed(Gateway(gateway.key_id, gateway.public_key, (aead,)), b"\x09").body)
        assert answer.status == (200 if aead in listed else 400), aead
        if aead in others:
            assert answer.json["code"] == "unknown-gateway-key"


def test_a_key_file_is_its_owners_alone_and_may_hold_older_keys(key):
    older, newer = read_gateway_seeds(key)
    assert (older, newer == older) == (bytes(32), False)
    foreign = "ldp-bayes signing key 1: AAAA\n"
    wrong = ((2 * NEWER, "one identifier"), (LINE.format("AAAA"), "damaged"), (foreign, "create FILE --gateway"))
    for text, problem in wrong:
        key.write_text(text)
        with pytest.raises(LdpError, match=problem):
            read_gateway_seeds(key)
    key.chmod(0o644)
    with pytest.raises(LdpError, match="chmod 600"):
        read_gateway_seeds(key)


async def test_in_the_clear_a_relays_batch_is_of_answers_that_each_show_a_token(server):
    campaign = await server.publish(64, issuer=issuer())
    reports = reports_of(campaign, range(6))
    token = {one.id: read_credentials(shown_for(campaign, one)) for one in reports}

    async def sent(parts, scope="relay", of=campaign, **headers):
        url, headers = f"{server.public}/v1/campaigns/{of.id}/batch", {"Content-Type": ANSWERS_TYPE} | headers
        return await server.ask("POST", url, scope, data=b"".join(parts), headers=headers)

    def answer(one, shown=None):
        return (token[one.id] if shown is None else shown) + encode_upload([one], campaign)

    good = [answer(one) for one in reports[:4]]
    assert (await sent(good, scope="")).refused == (401, "missing-token")
    assert (await sent(good, scope="device")).refused == (403, "wrong-scope")
    assert (await sent([good[0][:-1]])).refused == (400, "malformed-request")
    assert (await sent([])).refused == (400, "malformed-request")
    assert (await sent(good, of=await server.publish(64, title="of anybody"))).refused == (400, "malformed-request")
    wrong = [answer(reports[4], token[reports[5].id]), answer(reports[5], bytes(354))]
    assert (await sent([*good, *wrong], **{BATCH_HEADER: "5"})).json == {"taken": 4}
    # The same again counts once; what is left of a batch is its crowd.
    assert (await sent(good, **{BATCH_HEADER: "5"})).json == {"taken": 4}
    arrivals = (await server.store.state(campaign.id)).arrivals
    assert (arrivals.reports, arrivals.otherwise, arrivals.least_batch) == (4, 0, 4)


@pytest.fixture
async def crowd(server, gateway):
    """A campaign with a crowd of a hundred, whose people the relay is said to know."""
    promise = {"epsilon": 1, "delta": 1e-6, "devices": 100, "honest": 1, "without_issuer": "the relay knows them"}
    return await server.publish(64, gateway=gateway.to_json(), privacy={"crowd": promise, "most_local": 4})


async def test_a_crowds_answers_come_in_whole_batches_of_a_relay_and_no_other_way(server, crowd, sealed, ask, batch):
    one = sealed(crowd, [1])
    refused = json.loads((await ask(one)).body)
    assert (refused["status"], refused["code"]) == (403, "not-mixed")
    upload = encode_upload(reports_of(crowd, [1]), crowd)
    for scope in (None, "device", "relay"):
        answer = await server.ask(
            "POST",
            f"{server.public}/v1/campaigns/{crowd.id}/reports",
            scope,
            data=upload,
            headers={"Content-Type": MEDIA_TYPE, "LDP-Relay-Batch": "100"},
        )
        assert (answer.status, answer.json["code"]) == (403, "not-mixed")
    for word in ({}, {"LDP-Relay-Batch": "99"}):
        answer = await batch([one.body], **word)
        assert (answer.status, answer.json["code"]) == (403, "batch-too-small"), "the relay keeps it"
    assert (await server.store.state(crowd.id)).reports == 0


async def test_of_a_crowd_nothing_is_shown_or_trained_before_the_whole_batch_is_there(server, crowd, sealed, batch):
    bodies = [sealed(crowd, [(number, number % 64)]).body for number in range(100)]
    word = {"LDP-Relay-Batch": "100"}
    for part in (bodies[:10], bodies[10:99]):
        assert (await batch(part, **word)).json == {"taken": len(part)}
        told = await server.ask("GET", f"{server.admin}/admin/v1/campaigns/{crowd.id}/estimates", "admin")
        assert [question["n"] for question in told.json["questions"]] == [0]
        trained = await server.ask("POST", f"{server.admin}/admin/v1/campaigns/{crowd.id}/train", "admin")
        assert (trained.status, trained.json["code"]) == (409, "nothing-to-train")
    assert (await batch(bodies[99:], **word)).json == {"taken": 1}
    told = await server.ask("GET", f"{server.admin}/admin/v1/campaigns/{crowd.id}/estimates", "admin")
    assert [question["n"] for question in told.json["questions"]] == [100]
    arrivals = (await server.store.state(crowd.id)).arrivals
    assert (arrivals.least_batch, arrivals.vouched, arrivals.otherwise) == (100, 100, 0), (
        "parts hide what the whole does"
    )
