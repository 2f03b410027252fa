"""An aggregator that is believed only as far as a publisher's signature goes: a key that the app was shipped with."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from ldp_client.errors import RefusedError, StorageError, TransportError
from ldp_client.network.aggregator import Aggregator
from ldp_client.policy import CLOCK_TOLERANCE
from ldp_client.storage.contract import PUBLISHERS, pack, unpack
from ldp_protocols.document.directory import Directory, read_directory, read_key
from ldp_protocols.errors import DocumentError, LdpError

if TYPE_CHECKING:
    from collections.abc import Collection

    from ldp_client.storage.contract import Storage, Transaction


class SignedAggregator(Aggregator):
    """Asks the directories which campaigns and models the holders of ``keys`` have signed: the word of one suffices, so
    that an app may pin a publisher's next key beside the one in use.

    ``storage`` keeps the newest directory of each that was ever seen; an older one is refused from then on. Raises
    LdpError for a key that is none, and what :class:`Aggregator` raises.
    """

    def __init__(
        self, *arguments: Any, keys: str | Collection[str], storage: Storage, relay: str | None = None
    ) -> None:
        super().__init__(*arguments, relay=relay)
        self._keys = (keys,) if isinstance(keys, str) else tuple(keys)
        try:
            for key in self._keys:
                read_key(key)
        except DocumentError as error:
            raise LdpError("bad-publisher", str(error)) from None
        if not self._keys:
            raise LdpError("bad-publisher", "publisher must name one key at least, or be None")
        self._storage = storage

    @property
    def signer(self) -> str:
        """See :class:`Aggregator`."""
        return "+".join(self._keys)

    def refresh(self) -> None:
        """Have a directory that holds now and names the campaign, or the newest there is.

        Raises DocumentError for one that is not signed, older than one seen before or expired; what it does not name is
        for :meth:`refusal` to tell. Raises TransportError and StorageError.
        """
        if not any(self.campaign_id in directory.campaigns for directory in self._read()):
            self._renew()

    def refusal(self, transaction: Transaction) -> RefusedError | None:
        """The reason why the campaign is not one of the publisher's; nothing is fetched. Raises StorageError."""
        directories = self._standing(transaction)
        if not directories:
            return RefusedError("directory-expired")
        if not any(self.campaign_id in directory.campaigns for directory in directories):
            return RefusedError("not-in-directory")
        return None

    def model(self) -> bytes:
        """See :meth:`Aggregator.model`. Raises DocumentError (``invalid-model``) also for one that is not signed, and
        what :meth:`refresh` raises.
        """
        document = super().model()
        digest = hashlib.sha256(document).hexdigest()
        if not self._signs(digest):
            try:
                self._renew()
            except DocumentError as error:
                raise DocumentError("invalid-model", f"the model cannot be checked: {error}") from None
            if not self._signs(digest):
                raise DocumentError("invalid-model", "the model is not the one that the publisher's directory names")
        return document

    def _signs(self, digest: str) -> bool:
        return any(directory.campaigns.get(self.campaign_id) == digest for directory in self._read())

    def _renew(self) -> None:
        """Ask for the directory of each key. Raises what went wrong with the first one, where none was had."""
        failures: list[Exception] = []
        for key in self._keys:
            try:
                self._renew_one(key)
            except (DocumentError, TransportError) as error:  # The other key may do.
                if isinstance(error, TransportError) and error.status is None:
                    raise  # Nobody answered.
                failures.append(error)
        if len(failures) == len(self._keys):
            raise failures[0]

    def _renew_one(self, key: str) -> None:
        document = self.directory(key)
        directory = read_directory(document, key)
        with self._storage.transaction(write=True) as transaction:
            newest = self._stored(transaction, key)
            if newest is not None and directory.version <= newest.version and directory != newest:
                problem = f"directory {directory.version} was served, and another {newest.version} seen before"
                raise DocumentError("older-directory", problem)
            transaction.put(PUBLISHERS + key, pack(PUBLISHERS + key, document))
        if self._has_expired(directory):
            raise DocumentError("directory-expired", f"the directory held until {directory.expires:%Y-%m-%d}")

    def _read(self) -> list[Directory]:
        with self._storage.transaction(write=False) as transaction:
            return self._standing(transaction)

    def _standing(self, transaction: Transaction) -> list[Directory]:
        """The newest directories that were seen, as far as they hold now."""
        directories = [self._stored(transaction, key) for key in self._keys]
        return [directory for directory in directories if directory is not None and not self._has_expired(directory)]

    def _stored(self, transaction: Transaction, key: str) -> Directory | None:
        stored = transaction.get(PUBLISHERS + key)
        try:
            return None if stored is None else read_directory(unpack(PUBLISHERS + key, stored), key, known=True)
        except DocumentError:
            # Safety: it was whole when it was stored, and is behind a checksum. Taken for none, it would let any older
            # one in.
            raise StorageError("storage-newer") from None

    def _has_expired(self, directory: Directory) -> bool:
        return directory.expires.timestamp() <= self._clock.time() - CLOCK_TOLERANCE
