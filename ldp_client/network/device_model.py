"""The campaign's model on this device: fetched, kept in the cache, ready to classify offline."""

from __future__ import annotations

from collections.abc import Callable

from ldp_client.errors import ServerError, StorageError, TransportError
from ldp_client.network.aggregator import Aggregator
from ldp_client.network.cache import Cache
from protocols import ModelError
from protocols.document.schema import Label
from protocols.model import Model


def stored_model(aggregator: Aggregator, cache: Cache, label: Label | None) -> Model | None:
    """The model as it is stored, None where there is none that can be read.

    ``label`` is the campaign's, as whoever asks knows it: a model about another is one that cannot be read; None leaves
    that unchecked.
    """
    return _usable(cache.get(_key(aggregator)), label)


def fetch_model(
    aggregator: Aggregator, cache: Cache, label: Label | None, may_keep: Callable[[], bool] = lambda: True
) -> Model:
    """The model as it stands now, or the stored one where that cannot be had within what the call has left.

    A model that cannot be read never replaces one that can. ``may_keep`` says whether it is stored for later.

    Raises ModelUnavailableError; and ModelError, ServerError, StorageError or TransportError, where there is no stored
    one either.
    """
    key = _key(aggregator)
    stored = cache.get(key)
    try:
        document = aggregator.model()
        model = _read(document, label)
    except (ModelError, ServerError, StorageError, TransportError):
        known = _usable(stored, label)
        if known is None:
            raise
        return known
    if document != stored and may_keep():
        cache.put(key, document)
    return model


def _key(aggregator: Aggregator) -> str:
    # What was stored unsigned is not what a publisher signed.
    return f"model/{aggregator.campaign_id}{aggregator.signer and '/' + aggregator.signer}"


def _usable(stored: bytes | None, label: Label | None) -> Model | None:
    try:
        return None if stored is None else _read(stored, label)
    except ModelError:
        return None


def _read(document: bytes, label: Label | None) -> Model:
    model = Model.from_json(document)
    if label is not None and (model.label, model.classes) != (label.name, label.classes):
        raise ModelError("classes: the model is about another label than the campaign")
    return model
