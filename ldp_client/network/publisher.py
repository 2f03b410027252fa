"""An aggregator that is believed only as far as a publisher's signature goes: a key that the app was shipped with."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from ldp_client.errors import REFUSALS, ConfigurationError, RefusedError, StorageError
from ldp_client.network.aggregator import Aggregator
from ldp_client.storage.checksummed import pack, unpack
from ldp_client.storage.contract import PUBLISHERS
from protocols.document.directory import Directory, read_directory, read_key
from protocols.errors import DocumentError, ModelError

if TYPE_CHECKING:
    from ldp_client.storage.contract import Storage, Transaction


class SignedAggregator(Aggregator):
    """Asks the directory which campaigns and models the holder of ``key`` has signed.

    ``storage`` keeps the newest directory that was ever seen; an older one is refused from then on. Raises
    ConfigurationError for a key that is none, and what :class:`Aggregator` raises.
    """

    def __init__(self, url: str, *arguments: Any, key: str, storage: Storage) -> None:
        super().__init__(url, *arguments)
        try:
            read_key(key)
        except DocumentError as error:
            raise ConfigurationError("bad-publisher", str(error)) from None
        self._key = key
        self._kept = PUBLISHERS + key
        self._storage = storage

    @property
    def signer(self) -> str:
        """See :class:`Aggregator`."""
        return self._key

    def refresh(self) -> None:
        """Have a directory that holds now and names the campaign, or the newest there is.

        Raises DocumentError for one that is not signed, older than one seen before or expired; what it does not name is
        for :meth:`refusal` to tell. Raises ServerError, TransportError and StorageError.
        """
        known = self._read()
        if known is None or self.campaign_id not in known.campaigns or self._has_expired(known):
            self._renew()

    def refusal(self, transaction: Transaction) -> RefusedError | None:
        """Why the campaign is not one of the publisher's; nothing is fetched. Raises StorageError."""
        directory = self._stored(transaction)
        if directory is None or self._has_expired(directory):
            return RefusedError("directory-expired", REFUSALS["directory-expired"])
        if self.campaign_id not in directory.campaigns:
            return RefusedError("not-in-directory", REFUSALS["not-in-directory"])
        return None

    def model(self, known: bytes | None) -> bytes | None:
        """See :meth:`Aggregator.model`. Raises also ModelError for one that is not signed, and what :meth:`refresh`
        raises but for DocumentError.
        """
        document = super().model(known)
        digest = hashlib.sha256(document or known or b"").hexdigest()
        if not self._signs(digest):
            try:
                self._renew()
            except DocumentError as error:
                raise ModelError(f"the model cannot be checked: {error}") from None
            if not self._signs(digest):
                raise ModelError("the model is not the one that the publisher's directory names")
        return document

    def _signs(self, digest: str) -> bool:
        directory = self._read()
        if directory is None or self._has_expired(directory):
            return False
        return directory.campaigns.get(self.campaign_id) == digest

    def _renew(self) -> None:
        document = self.directory(self._key)
        directory = read_directory(document, self._key)
        with self._storage.transaction(write=True) as transaction:
            newest = self._stored(transaction)
            if newest is not None and directory.version <= newest.version and directory != newest:
                problem = f"directory {directory.version} was served, and another {newest.version} seen before"
                raise DocumentError("older-directory", problem)
            transaction.put(self._kept, pack(self._kept, document))
        if self._has_expired(directory):
            raise DocumentError("directory-expired", f"the directory held until {directory.expires:%Y-%m-%d}")

    def _read(self) -> Directory | None:
        with self._storage.transaction(write=False) as transaction:
            return self._stored(transaction)

    def _stored(self, transaction: Transaction) -> Directory | None:
        stored = transaction.get(self._kept)
        try:
            return None if stored is None else read_directory(unpack(self._kept, stored), self._key, known=True)
        except DocumentError:
            # Safety: it was whole when it was stored, and is behind a checksum. Taken for none, it would let any older
            # one in.
            raise StorageError("storage-newer") from None

    def _has_expired(self, directory: Directory) -> bool:
        return directory.expires.timestamp() <= self._clock.time() - self._policy.clock_tolerance
