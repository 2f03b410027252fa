"""An app that pins its publisher's key: what is not signed, older or expired is not believed, whoever serves it."""

import hashlib
import json
import time
from datetime import datetime, timezone

import pytest

from ldp_aggregator.service.signing import public_key, sign_directory
from ldp_client import Classifier, Device, DocumentError, MemoryStorage, RefusedError, StorageError, TransportError
from ldp_client.network.stdlib import HttpTransport
from ldp_client.storage.contract import pack
from ldp_protocols import LdpError

SEED, OTHER = bytes(32), bytes([1]) * 32
KEY = public_key(SEED)
DAY = 86400
LABELLED = ({"age": "young", "income": 1, "hours": 1}, "yes")


@pytest.fixture
def sign(server, campaign, clock):
    """Serve a directory; returns nothing. ``days`` from now it expires."""

    def serve(version=1, *, days=30, campaigns=None, seed=SEED, key=KEY):
        expires = datetime.fromtimestamp(clock.time() + days * DAY, timezone.utc)
        named = {campaign.id: None} if campaigns is None else campaigns
        server.publish_directory(key, sign_directory(seed, version, expires, named))

    return serve


@pytest.fixture
def pinned(server, campaign, clock, monkeypatch):
    """A part in the campaign of a device that pins the key; the device keeps what it knows in ``storage``."""
    monkeypatch.setattr("ldp_client.network.publisher.CLOCK_TOLERANCE", 0.0)

    def make(storage=None, publisher=KEY):
        device = Device(MemoryStorage() if storage is None else storage, max_total_epsilon=8, clock=clock)
        return device.campaign(server.url, campaign.id, max_epsilon=4, publisher=publisher)

    return make


def asked(server):
    return [path for _, path in server.requests if "/directories/" in path]


def test_a_signed_campaign_is_answered_and_its_directory_fetched_once(server, pinned, sign):
    sign()
    part = pinned()
    assert part.refusal() is None
    part.grant()
    assert asked(server) == [f"/v1/directories/{KEY}"]
    before = len(server.requests)
    part.contribute(*LABELLED)
    assert len(server.requests) == before, "contributing uses no network"


def test_a_directory_and_a_campaign_share_the_seconds_of_a_call(server, campaign, sign):
    given = []

    class Slow(HttpTransport):
        def send(self, request, timeout, cancellation=None):
            given.append(timeout)
            time.sleep(0.02)
            return super().send(request, timeout, cancellation)

    sign(days=365)
    device = Device(MemoryStorage(), max_total_epsilon=8, transport=Slow())
    device.campaign(server.url, campaign.id, max_epsilon=4, publisher=KEY).fetch(timeout=5)
    first, second = given
    assert second <= first - 0.02


def test_what_has_no_directory_is_not_named_in_it_or_stands_in_one_of_somebody_elses_is_refused(pinned, sign, code_of):
    with pytest.raises(TransportError):
        pinned().fetch()
    sign(campaigns={"A" * 43: None})
    part = pinned()
    assert part.refusal().code == code_of(RefusedError, part.grant) == "not-in-directory"
    sign(seed=OTHER)
    assert code_of(DocumentError, pinned().fetch) == "wrong-signature"


def test_an_older_directory_is_refused_after_a_restart_too(pinned, sign, campaign, code_of):
    storage = MemoryStorage()
    sign(5, campaigns={"A" * 43: None})
    assert pinned(storage).refusal().code == "not-in-directory"
    sign(4)
    assert code_of(DocumentError, pinned(storage).fetch) == "older-directory"
    sign(5)
    with pytest.raises(DocumentError, match="another 5 seen"):
        pinned(storage).fetch()
    sign(6)
    assert pinned(storage).refusal() is None
    sign(4)
    assert pinned().refusal() is None, "a fresh device takes whatever version is signed"


def test_a_stored_directory_that_a_later_version_wrote_lets_no_older_one_in(pinned, sign, code_of):
    storage = MemoryStorage()
    pinned(storage)
    place = f"publisher/{KEY}"
    with storage.transaction(write=True) as transaction:
        transaction.put(place, pack(place, b'{"statement": "of a later version", "signature": "x"}'))
    sign()
    assert code_of(StorageError, pinned(storage).fetch) == "storage-newer"
    with storage.transaction(write=False) as transaction:
        assert b"of a later version" in transaction.get(place)


def test_an_expired_directory_is_fetched_anew_and_refused_where_that_gives_none(pinned, sign, clock, code_of):
    storage = MemoryStorage()
    sign(1, days=1)
    part = pinned(storage)
    part.grant()
    clock.advance(DAY)
    assert code_of(RefusedError, part.contribute, *LABELLED) == "directory-expired"
    assert code_of(DocumentError, part.fetch) == "directory-expired"
    sign(2)
    part.fetch()
    assert part.refusal() is None
    part.contribute(*LABELLED)


def test_an_expired_directory_is_remembered_all_the_same_and_lets_no_older_one_in(pinned, sign, code_of):
    storage = MemoryStorage()
    sign(2, days=-1)
    assert code_of(DocumentError, pinned(storage).fetch) == "directory-expired"
    sign(1)
    assert code_of(DocumentError, pinned(storage).fetch) == "older-directory"
    sign(3)
    assert pinned(storage).refusal() is None


def test_a_directory_holds_a_day_longer_than_it_says(server, campaign, clock, sign, code_of):
    """A device's clock may be ahead; ``pinned`` leaves that out."""
    sign(days=30)
    device = Device(MemoryStorage(), max_total_epsilon=8, clock=clock)
    part = device.campaign(server.url, campaign.id, max_epsilon=4, publisher=KEY)
    part.grant()
    clock.advance(31 * DAY)
    assert code_of(RefusedError, part.contribute, *LABELLED) == "directory-expired"
    clock.advance(-1)
    part.contribute(*LABELLED)


def digest(model):
    return hashlib.sha256(model.encode()).hexdigest()


def test_only_the_signed_model_classifies_and_another_does_not_replace_it(
    server, pinned, sign, campaign, model, renewed
):
    def newest():
        """Of the stored model, and what was fetched after it was used."""
        part.classifier()
        renewed()
        return part.classifier().model.prior

    part = pinned()
    server.publish_model(campaign.id, model)
    sign(1)
    part.grant()
    with pytest.raises(DocumentError, match="not the one"):
        part.classifier()
    sign(2, campaigns={campaign.id: digest(model)})
    assert part.classifier().model.prior == (0.4, 0.6)
    swapped = json.dumps(json.loads(model) | {"prior": [0.9, 0.1]})
    server.publish_model(campaign.id, swapped)
    assert newest() == (0.4, 0.6), "the server may not choose another"
    renewed()
    sign(3, campaigns={campaign.id: digest(swapped)})
    assert newest() == (0.9, 0.1)
    renewed()
    server.publish_model(campaign.id, model)
    assert newest() == (0.9, 0.1), "nor one that was signed before"


def test_a_model_that_is_signed_for_another_campaign_is_none_of_this_one(
    server, pinned, sign, campaign, model, code_of, renewed
):
    """Of all that the publisher signed the server could otherwise choose."""
    swapped = json.dumps(json.loads(model) | {"prior": [0.9, 0.1]})
    sign(campaigns={campaign.id: digest(model), "A" * 43: digest(swapped)})
    part = pinned()
    part.grant()
    server.publish_model(campaign.id, swapped)
    assert code_of(DocumentError, part.classifier) == "invalid-model"
    server.publish_model(campaign.id, model)
    assert part.classifier().model.prior == (0.4, 0.6)
    server.publish_model(campaign.id, swapped)
    for _ in range(2):
        assert part.classifier().model.prior == (0.4, 0.6)
        renewed()


def test_each_of_two_publishers_speaks_for_the_campaigns_that_it_names_and_for_its_own_model(
    server, pinned, sign, campaign, model, code_of
):
    following = public_key(OTHER)
    swapped = json.dumps(json.loads(model) | {"prior": [0.9, 0.1]})
    sign(campaigns={campaign.id: digest(model)})
    sign(seed=OTHER, key=following, campaigns={"A" * 43: digest(swapped)})
    part = pinned(publisher=(KEY, following))
    part.grant()
    server.publish_model(campaign.id, swapped)
    assert code_of(DocumentError, part.classifier) == "invalid-model"
    server.publish_model(campaign.id, model)
    assert part.classifier().model.prior == (0.4, 0.6)
    assert pinned(publisher=following).refusal().code == "not-in-directory"


def test_a_model_that_was_stored_unsigned_is_not_taken_for_a_signed_one(server, pinned, sign, campaign, model):
    storage = MemoryStorage()
    server.publish_model(campaign.id, model)
    sign(1)
    unpinned = pinned(storage, publisher=None)
    unpinned.grant()
    assert unpinned.classifier() is not None
    with pytest.raises(DocumentError):
        pinned(storage).classifier()


def test_a_classifier_alone_can_pin_the_publisher_on_a_storage_that_lasts(server, sign, campaign, model):
    """Without one every start would take an old model again."""
    with pytest.raises(LdpError, match="needs a storage that lasts") as refused:
        Classifier.fetch(server.url, campaign.id, publisher=KEY)
    assert refused.value.code == "no-storage"
    days = (time.time() - 1_800_000_000) / DAY + 365
    storage = MemoryStorage()
    server.publish_model(campaign.id, model)
    sign(1, days=days)
    with pytest.raises(DocumentError):
        Classifier.fetch(server.url, campaign.id, storage=storage, publisher=KEY)
    sign(2, days=days, campaigns={campaign.id: digest(model)})
    assert Classifier.fetch(server.url, campaign.id, storage=storage, publisher=KEY).classes == ("yes", "no")


def test_of_two_pinned_keys_the_word_of_one_suffices(pinned, sign, server, campaign, model):
    """An app is shipped with the next key before the last one is given up."""
    following = public_key(OTHER)
    storages = [MemoryStorage(), MemoryStorage()]
    sign(campaigns={})
    pairs = [*zip(storages, [(KEY, following), (following, KEY)], strict=True)]
    for storage, keys in pairs:
        assert pinned(storage, publisher=keys).refusal().code == "not-in-directory"
    sign(seed=OTHER, key=following)
    for storage, keys in pairs:
        assert pinned(storage, publisher=keys).refusal() is None
    assert pinned(publisher=KEY).refusal().code == "not-in-directory"


@pytest.mark.parametrize("publisher", ["", "A" * 42, "no key", ()])
def test_what_is_no_key_is_told_at_once(pinned, publisher, code_of):
    assert code_of(LdpError, pinned, publisher=publisher) == "bad-publisher"


def test_scopes_of_a_backend_share_what_was_seen(server, campaign, clock, sign):
    sign()
    device = Device(MemoryStorage(), max_total_epsilon=8, clock=clock)
    for name in ("one", "two"):
        part = device.scope(name).campaign(server.url, campaign.id, max_epsilon=4, publisher=KEY)
        part.grant()
        part.contribute(*LABELLED)
    assert len(asked(server)) == 1
