"""The gateway's keys: which of them are here, and who is waited for."""

import asyncio
import json
import time
from functools import partial
from hashlib import sha256
from itertools import count
from unittest.mock import Mock

import pytest
from cells import cell_campaign

from ldp_aggregator.server.gateway import Departures, GatewayKeys, SealedUpload
from ldp_aggregator.server.problems import PROBLEMS, ProblemError
from ldp_aggregator.service.settings import Settings
from ldp_aggregator.service.signing import append_gateway_key, gateway_of, make_gateway_key
from ldp_aggregator.store.contract import Outcome
from ldp_client.network.sealed import Sealed
from ldp_protocols import DraftError, LdpError
from ldp_protocols.oblivious import BinaryRequest, decode_response, encode_request

SEED = bytes(32)
LONGEST = {"WWW-Authenticate": "x" * 700}


@pytest.fixture
def answered():
    """The answer to a sealed upload, unsealed, and the seconds after which it left."""

    async def told(act):
        told = asyncio.get_running_loop().create_future()
        upload = SealedUpload(Mock(seal=bytes), Mock(), Departures(), told.set_result)
        act(upload)
        return await told, time.perf_counter() - upload.since

    return told


def test_a_key_is_known_by_all_of_it_and_not_by_the_byte_that_names_it():
    keys = GatewayKeys((SEED,))
    here = gateway_of(SEED)
    others = (gateway_of(sha256(b"%d" % number).digest()) for number in count())
    alike = next(other for other in others if other.key_id == here.key_id)
    assert not keys.lacks([here])
    assert keys.lacks([alike])
    assert not GatewayKeys((SEED,), elsewhere=True).lacks([alike])
    keys.check_receivable(cell_campaign(gateway=here.to_json()))
    with pytest.raises(DraftError, match="is none of the 1 that"):
        keys.check_receivable(cell_campaign(gateway=alike.to_json()))


def test_a_campaign_of_several_keys_is_published_where_all_of_them_are():
    seeds = (SEED, bytes(range(32)))
    first, second = map(gateway_of, seeds)
    campaign = cell_campaign(gateway={"key": f"{first.key} 2027-06-01T00:00:00Z {second.key}"})
    GatewayKeys(seeds).check_receivable(campaign)
    for seed in seeds:
        with pytest.raises(DraftError, match="one of its keys is none of the 1 that"):
            GatewayKeys((seed,)).check_receivable(campaign)


async def test_who_hangs_up_while_his_upload_is_opened_stops_nobody():
    keys = GatewayKeys((SEED,))
    gone = asyncio.create_task(keys.open_in_turn(b"no upload"))
    await asyncio.sleep(0)
    gone.cancel()
    for _ in range(3):
        with pytest.raises(ProblemError, match="at least"):
            await asyncio.wait_for(keys.open_in_turn(b"no upload"), 20)


@pytest.mark.parametrize("detail", ["", "x" * 4000])
async def test_every_answer_has_one_length(answered, detail):
    ends = [partial(SealedUpload.refuse, problem=ProblemError(code, detail, headers=LONGEST)) for code in PROBLEMS]
    bad = tuple((bytes([number]) * 16, "index-out-of-range") for number in range(250))
    outcomes = (Outcome(1), Outcome(rejected=bad), Outcome(rejected=bad[:1]), Outcome(refused="unknown-campaign"))
    ends += [partial(SealedUpload.settle, outcome=outcome) for outcome in outcomes]
    told = await asyncio.gather(*map(answered, ends))
    assert {len(answer) for answer, _ in told} == {2048}
    assert [decode_response(answer).status for answer, _ in told[-4:]] == [200, 200, 200, 404]
    assert json.loads(decode_response(told[-3][0]).body)["rejected"][0] == ["00" * 16, "index-out-of-range"]


async def test_an_answer_leaves_tenths_of_a_second_after_its_request_whatever_it_says_and_however_long_it_took(
    answered,
):
    def late(upload):
        upload.since -= 0.13
        upload.settle(Outcome(1))

    counted = partial(SealedUpload.settle, outcome=Outcome(1))
    refused = partial(SealedUpload.refuse, problem=ProblemError("unknown-campaign"))
    for end, least in ((counted, 0.1), (refused, 0.1), (late, 0.2)):
        assert (await answered(end))[1] > least - 0.002


async def test_answers_that_leave_together_leave_all_where_one_of_them_cannot(caplog):
    departures, left, end = Departures(), [], asyncio.get_running_loop().create_future()
    since = time.perf_counter()
    for answer in (left.append, Mock(side_effect=OSError), left.append, end.set_result):
        departures.wait(since, answer, b"sealed")
    assert await end == b"sealed"
    assert left == [b"sealed"] * 2
    assert [(record.message, record.reason) for record in caplog.records] == [("an answer was not written", "OSError")]
    assert not departures._waiting


def test_what_was_recorded_is_opened_by_nobody_once_its_key_is_out_of_the_file_and_other_campaigns_go_on(tmp_path):
    path = tmp_path / "gateway.key"
    old, new = make_gateway_key(path), append_gateway_key(path)
    settings = Settings(gateway_key=path)
    keys = GatewayKeys.of(settings)
    message = encode_request(BinaryRequest("GET", "https", "x", "/"))
    recorded, later = (Sealed(gateway, message).body for gateway in (old, new))
    assert keys.open(recorded).request.path == "/"
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[-1])
    keys.read_again(settings)
    with pytest.raises(ProblemError) as refused:
        keys.open(recorded)
    assert refused.value.code == "unknown-gateway-key"
    assert keys.open(later).request.path == "/"


def test_a_file_that_is_read_again_opens_with_its_keys_alone_and_a_wrong_one_changes_nothing(tmp_path):
    path = tmp_path / "gateway.key"
    path.touch(0o600)
    first, second = (make_gateway_key(tmp_path / name) for name in ("first", "second"))
    path.write_bytes((tmp_path / "first").read_bytes())
    settings = Settings(gateway_key=path)
    keys = GatewayKeys.of(settings)
    assert (keys.lacks([first]), keys.lacks([second])) == (False, True)
    path.write_bytes((tmp_path / "second").read_bytes())
    keys.read_again(settings)
    assert (keys.lacks([first]), keys.lacks([second])) == (True, False)
    path.write_text("no key")
    with pytest.raises(LdpError):
        keys.read_again(settings)
    assert (keys.lacks([first]), keys.lacks([second])) == (True, False)
