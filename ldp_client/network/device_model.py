"""The campaign's model on this device: fetched when it has changed, kept in the storage, ready to classify offline."""

from __future__ import annotations

from ldp_client.classifier import Classifier
from ldp_client.errors import ModelUnavailableError, StorageError
from ldp_client.network.aggregator import Server
from ldp_client.network.cache import Cache
from ldp_client.storage.checksummed import pack, unpack
from protocols import ModelError
from protocols.document.schema import Label
from protocols.model import Model


class DeviceModel:
    """The model of one campaign. A model that cannot be read never replaces one that can."""

    def __init__(self, campaign_id: str, server: Server, cache: Cache) -> None:
        self._key = f"model/{campaign_id}"
        self._server = server
        self._cache = cache
        self._classifier: Classifier | None = None

    def refresh(self, label: Label | None) -> bool:
        """Fetch the model unless it is still the one at hand; ``label`` is the campaign's, where it is known."""
        etag, _ = self._stored()
        answer = self._server.model(etag)
        if answer.status == 304:
            return False
        self._classifier = _read(answer.body, label)
        self._cache.put(self._key, pack(self._key, [answer.headers.get("etag"), answer.body]))
        return True

    def classifier(self, label: Label | None) -> Classifier:
        """The model at hand, fetched where there is none."""
        if self._classifier is None:
            _, document = self._stored()
            if document is not None:
                self._classifier = _read(document, label)
            else:
                self.refresh(label)
        if self._classifier is None:
            raise ModelUnavailableError
        return self._classifier

    def _stored(self) -> tuple[str | None, bytes | None]:
        stored = self._cache.get(self._key)
        try:
            etag, document = (None, None) if stored is None else unpack(self._key, stored)
        except (StorageError, TypeError, ValueError):
            return None, None
        return etag, document


def _read(document: bytes, label: Label | None) -> Classifier:
    model = Model.from_json(document)
    if label is not None and (model.label, model.classes) != (label.name, label.classes):
        raise ModelError("classes: the model is about another label than the campaign")
    return Classifier(model)
