"""Classification on the device: Naive Bayes in pure Python, the same numbers as the aggregator's ``NaiveBayes``."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from ldp_client.errors import StorageError, TransportError
from ldp_protocols.document.model import Model
from ldp_protocols.document.schema import Label
from ldp_protocols.errors import DocumentError, LdpError

if TYPE_CHECKING:
    from typing import Self

    from ldp_client.network.aggregator import Aggregator
    from ldp_client.network.transport import Transport
    from ldp_client.policy import Policy
    from ldp_client.storage.contract import Cache, Storage


class Classifier:
    """Classifies records with a downloaded model. A feature without a usable value does not take part.

    Examples
    --------
    >>> import json
    >>> age = {"name": "age", "kind": "categorical", "values": ["young", "old"], "likelihood": [[0.6, 0.2], [0.4, 0.8]]}
    >>> model = {"version": 1, "kind": "naive-bayes", "label": "suits", "classes": ["yes", "no"], "prior": [0.5, 0.5]}
    >>> classifier = Classifier.from_json(json.dumps({**model, "features": [age]}))
    >>> classifier.predict({"age": "old"})
    'no'
    >>> {name: round(chance, 2) for name, chance in classifier.predict_proba({"age": "young"}).items()}
    {'yes': 0.75, 'no': 0.25}
    """

    def __init__(self, model: Model) -> None:
        self.model = model

    @classmethod
    def from_json(cls, text: bytes | str) -> Self:
        """A classifier from a model document. Raises DocumentError."""
        return cls(Model.from_json(text))

    @classmethod
    def fetch(
        cls,
        url: str,
        campaign_id: str,
        *,
        storage: str | os.PathLike[str] | Storage = ":memory:",
        timeout: float = 30.0,
        publisher: str | Collection[str] | None = None,
        transport: Transport | None = None,
        policy: Policy | None = None,
    ) -> Self:
        """A classifier with a campaign's model as it stands now, within ``timeout`` seconds; after them the stored one.

        Needs no consent, no ledger and no secret; the request is the same bytes from every device. ``storage`` is its
        own; from there the model comes where the server cannot be reached.

        ``publisher`` is the public key that has to have signed the model (of several, one of them). ``storage`` then
        keeps the newest directory that was seen, and has to last. A stored model stays in use where none that is signed
        can be had.

        Raises
        ------
        DocumentError
            What was served is none, or is not signed.
        TransportError
            It cannot be had, and none is stored; or there is no model yet (``no-model``).
        StorageError
            What the publisher signed cannot be kept or read, and no model is stored.
        LdpError
            For a URL or campaign id that is none, and for a publisher without a storage.
        """
        from ldp_client.network import SHARED_TRANSPORT
        from ldp_client.network.aggregator import Aggregator
        from ldp_client.policy import DEFAULT_POLICY
        from ldp_client.runtime import SYSTEM_CLOCK, within
        from ldp_client.storage.contract import Cache
        from ldp_client.storage.location import open_storage

        if publisher is not None and storage == ":memory:":
            text = 'publisher needs a storage that lasts (storage="models"), which remembers the newest directory'
            raise LdpError("no-storage", text)
        transport = transport or SHARED_TRANSPORT
        opened = open_storage(storage)
        where = (url, campaign_id, transport, SYSTEM_CLOCK, policy or DEFAULT_POLICY)
        if publisher is None:
            aggregator = Aggregator(*where)
        else:
            from ldp_client.network.publisher import SignedAggregator

            aggregator = SignedAggregator(*where, keys=publisher, storage=opened)
        cache = Cache(opened)
        with within(timeout):
            return cls(fetch_model(aggregator, cache, None))

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes, in the order of :meth:`predict_proba`."""
        return self.model.classes

    def predict(self, record: Mapping[str, object]) -> str:
        """The most probable class, of equals the first declared; where all are impossible, by the prior."""
        scores = self.scores(record)
        return self.classes[scores.index(max(scores))]

    def scores(self, record: Mapping[str, object]) -> list[float]:
        """:meth:`joint_log_likelihood`; where every class is impossible under the model, ln P(class)."""
        return self.model.scores(record)

    def predict_proba(self, record: Mapping[str, object]) -> dict[str, float]:
        """P(class | record). Where every class is impossible under the model, its prior."""
        scores = self.scores(record)
        largest = max(scores)
        weights = [math.exp(score - largest) for score in scores]
        total = math.fsum(weights)
        return {name: weight / total for name, weight in zip(self.classes, weights, strict=True)}

    def joint_log_likelihood(self, record: Mapping[str, object]) -> list[float]:
        """ln P(class) + the sum of ln P(value | class) over the features, per class."""
        return self.model.joint_log_likelihood(record)


def stored_model(aggregator: Aggregator, cache: Cache, label: Label | None) -> Model | None:
    """The stored model, None where none can be read or it is about another ``label`` (None: unchecked)."""
    return _usable(cache.get(_model_key(aggregator)), label)


def fetch_model(
    aggregator: Aggregator, cache: Cache, label: Label | None, may_keep: Callable[[], bool] = lambda: True
) -> Model:
    """The model as it stands now, or the stored one where that cannot be had within what the call has left.

    A model that cannot be read never replaces one that can. ``may_keep`` says whether it is stored for later.

    Raises TransportError where there is none yet (``no-model``); and it, DocumentError or StorageError where there is
    no stored one either.
    """
    key = _model_key(aggregator)
    stored = cache.get(key)
    try:
        document = aggregator.model()
        model = _read_model(document, label)
    except (DocumentError, StorageError, TransportError) as error:
        usable = None if error.code == "no-model" else _usable(stored, label)
        if usable is None:
            raise
        return usable
    if document != stored and may_keep():
        cache.put(key, document)
    return model


def _model_key(aggregator: Aggregator) -> str:
    # What was stored unsigned is not what a publisher signed.
    return f"model/{aggregator.campaign_id}{aggregator.signer and '/' + aggregator.signer}"


def _usable(stored: bytes | None, label: Label | None) -> Model | None:
    try:
        return None if stored is None else _read_model(stored, label)
    except DocumentError:
        return None


def _read_model(document: bytes, label: Label | None) -> Model:
    model = Model.from_json(document)
    if label is not None and (model.label, model.classes) != (label.name, label.classes):
        raise DocumentError("invalid-model", "classes: the model is about another label than the campaign")
    return model
