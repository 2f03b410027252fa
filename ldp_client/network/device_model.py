"""The campaign's model on this device: fetched when it has changed, kept in the cache, ready to classify offline."""

from __future__ import annotations

from ldp_client.classifier import Classifier
from ldp_client.errors import ModelUnavailableError
from ldp_client.network.aggregator import Aggregator
from ldp_client.network.cache import Cache
from ldp_client.network.transport import Cancellation
from protocols import ModelError
from protocols.document.schema import Label
from protocols.model import Model


class DeviceModel:
    """The model of one campaign. A model that cannot be read never replaces one that can, and is fetched again.

    ``label`` is the campaign's, as whoever asks knows it: a model about another is one that cannot be read. None leaves
    that unchecked.
    """

    def __init__(self, campaign_id: str, aggregator: Aggregator, cache: Cache) -> None:
        self._key = f"model/{campaign_id}"
        self._aggregator = aggregator
        self._cache = cache
        self._document: bytes | None = None
        self._classifier: Classifier | None = None

    def refresh(
        self, label: Label | None, timeout: float | None = None, cancellation: Cancellation | None = None
    ) -> bool:
        """Fetch the model unless it is still the one at hand; True where there is a new one.

        Raises ModelUnavailableError, ModelError, ServerError or TransportError.
        """
        self._recall(label)
        document = self._aggregator.model(self._document, timeout, cancellation)
        if document is None:
            return False
        self._document, self._classifier = document, _read(document, label)
        self._cache.put(self._key, document)
        return True

    def classifier(
        self, label: Label | None, timeout: float | None = None, cancellation: Cancellation | None = None
    ) -> Classifier:
        """The model at hand, fetched where there is none. Raises what :meth:`refresh` raises."""
        self._recall(label)
        if self._classifier is None:
            self.refresh(label, timeout, cancellation)
        if self._classifier is None:
            raise ModelUnavailableError
        return self._classifier

    def _recall(self, label: Label | None) -> None:
        """Take up the stored model where it can be read."""
        if self._classifier is not None and _is_about(self._classifier.model, label):
            return
        self._document = self._classifier = None
        stored = self._cache.get(self._key)
        if stored is not None:
            try:
                self._document, self._classifier = stored, _read(stored, label)
            except ModelError:
                self._document = None


def _read(document: bytes, label: Label | None) -> Classifier:
    model = Model.from_json(document)
    if not _is_about(model, label):
        raise ModelError("classes: the model is about another label than the campaign")
    return Classifier(model)


def _is_about(model: Model, label: Label | None) -> bool:
    return label is None or (model.label, model.classes) == (label.name, label.classes)
