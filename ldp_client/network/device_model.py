"""The campaign's model on this device: fetched when it has changed, kept in the cache, ready to classify offline."""

from __future__ import annotations

from ldp_client.errors import ModelUnavailableError, ServerError, StorageError, TransportError
from ldp_client.network.aggregator import Aggregator
from ldp_client.network.cache import Cache
from protocols import ModelError
from protocols.document.schema import Label
from protocols.model import Model


def fetch_model(aggregator: Aggregator, campaign_id: str, cache: Cache, label: Label | None) -> Model:
    """The model as it stands now, or the stored one where that cannot be had within what the call has left.

    A model that cannot be read never replaces one that can, and is fetched again. ``label`` is the campaign's, as
    whoever asks knows it: a model about another is one that cannot be read; None leaves that unchecked.

    Raises ModelUnavailableError; and ModelError, ServerError, StorageError or TransportError, where there is no stored
    one either.
    """
    # What was stored unsigned is not what a publisher signed.
    key = f"model/{campaign_id}{aggregator.signer and '/' + aggregator.signer}"
    stored = cache.get(key)
    known = None
    if stored is not None:
        try:
            known = _read(stored, label)
        except ModelError:
            stored = None
    try:
        document = aggregator.model(stored)
        model = known if document is None else _read(document, label)
    except (ModelError, ServerError, StorageError, TransportError):
        if known is None:
            raise
        return known
    if document is not None:
        cache.put(key, document)
    if model is None:
        raise ModelUnavailableError
    return model


def _read(document: bytes, label: Label | None) -> Model:
    model = Model.from_json(document)
    if label is not None and (model.label, model.classes) != (label.name, label.classes):
        raise ModelError("classes: the model is about another label than the campaign")
    return model
