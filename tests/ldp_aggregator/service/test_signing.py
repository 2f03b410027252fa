"""Files of keys, and what is signed by them: nothing leaves that a device would not take."""

from base64 import urlsafe_b64encode
from datetime import datetime, timedelta, timezone
from hashlib import sha256
from itertools import count

import pytest

from ldp_aggregator.service.signing import (
    append_gateway_key,
    gateway_of,
    make_gateway_key,
    public_key,
    read_gateway_seeds,
    sign_directory,
)
from ldp_protocols import DocumentError
from ldp_protocols.document.directory import read_directory

SEED = bytes(32)
SOON = datetime.now(timezone.utc).replace(microsecond=0) + timedelta(days=9)


def line_of(seed):
    return f"ldp-bayes gateway key 1: {urlsafe_b64encode(seed).rstrip(b'=').decode()}\n"


def test_a_directory_that_no_device_would_take_is_not_signed():
    campaign = "A" * 43
    signed = sign_directory(SEED, 1, SOON, {campaign: None})
    assert list(read_directory(signed, public_key(SEED)).campaigns) == [campaign]
    for version in (0, 2**53):
        with pytest.raises(DocumentError, match="version: must be an integer from 1"):
            sign_directory(SEED, version, SOON, {campaign: None})


def test_of_two_keys_that_are_called_alike_none_is_read_and_no_new_one_is_called_as_one_that_is_there(tmp_path):
    """An identifier is a byte: devices would seal to the one and the other would be asked to open."""
    path = tmp_path / "gateway.key"
    others = (sha256(b"%d" % number).digest() for number in count())
    alike = next(seed for seed in others if gateway_of(seed).key_id == gateway_of(SEED).key_id)
    path.touch(0o600)
    path.write_text(line_of(SEED) + line_of(alike))
    with pytest.raises(DocumentError, match="have one identifier"):
        read_gateway_seeds(path)
    path.unlink()
    made = [make_gateway_key(path)] + [append_gateway_key(path) for _ in range(60)]
    assert len({gateway.key_id for gateway in made}) == 61
    assert list(map(gateway_of, read_gateway_seeds(path))) == made
