"""A person's rights over a device's storage: what is erased, and what is not."""

import pytest
from holding import Failing

from ldp_client import Device, StorageError


@pytest.mark.parametrize(
    ("code", "scope", "is_discarded"),
    [("storage-corrupt", "", True), ("storage-busy", "", False), ("storage-corrupt", "ann", False)],
)
def test_only_a_storage_that_cannot_be_read_is_discarded_and_only_as_a_whole(code, scope, is_discarded):
    """One that another process holds is whole, and holds what others said."""
    discarded = []

    class Discarding(Failing):
        def discard(self):
            discarded.append(None)

    storage = Discarding(StorageError(code))
    device = Device(storage, max_total_epsilon=8)
    storage.fails = "write"
    device = device.scope(scope) if scope else device
    if is_discarded:
        device.erase()
    else:
        with pytest.raises(StorageError) as caught:
            device.erase()
        assert caught.value.code == code
    assert bool(discarded) is is_discarded
