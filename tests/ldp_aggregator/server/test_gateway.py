"""The gateway's keys: which of them are here, and who is waited for."""

import asyncio
from hashlib import sha256
from itertools import count

import pytest

from ldp_aggregator.server.gateway import GatewayKeys
from ldp_aggregator.server.problems import ProblemError
from ldp_aggregator.service.settings import Settings
from ldp_aggregator.service.signing import gateway_of, make_gateway_key
from ldp_protocols import LdpError

SEED = bytes(32)


def test_a_key_is_known_by_all_of_it_and_not_by_the_byte_that_names_it():
    keys = GatewayKeys((SEED,))
    here = gateway_of(SEED)
    others = (gateway_of(sha256(b"%d" % number).digest()) for number in count())
    alike = next(other for other in others if other.key_id == here.key_id)
    assert not keys.lacks(here)
    assert keys.lacks(alike)
    assert not GatewayKeys((SEED,), elsewhere=True).lacks(alike)


async def test_who_hangs_up_while_his_upload_is_opened_stops_nobody():
    keys = GatewayKeys((SEED,))
    gone = asyncio.create_task(keys.open_in_turn(b"no upload"))
    await asyncio.sleep(0)
    gone.cancel()
    for _ in range(3):
        with pytest.raises(ProblemError, match="at least"):
            await asyncio.wait_for(keys.open_in_turn(b"no upload"), 20)


def test_a_file_that_is_read_again_opens_with_its_keys_alone_and_a_wrong_one_changes_nothing(tmp_path):
    path = tmp_path / "gateway.key"
    path.touch(0o600)
    first, second = (make_gateway_key(tmp_path / name) for name in ("first", "second"))
    path.write_bytes((tmp_path / "first").read_bytes())
    settings = Settings(gateway_key=path)
    keys = GatewayKeys.of(settings)
    assert (keys.lacks(first), keys.lacks(second)) == (False, True)
    path.write_bytes((tmp_path / "second").read_bytes())
    keys.read_again(settings)
    assert (keys.lacks(first), keys.lacks(second)) == (True, False)
    path.write_text("no key")
    with pytest.raises(LdpError):
        keys.read_again(settings)
    assert (keys.lacks(first), keys.lacks(second)) == (True, False)
