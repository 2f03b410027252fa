"""What an app embeds: answers a campaign under local differential privacy, and classifies with what was learned.

Standard library and msgpack only. ``Client`` is the whole life of a device in a campaign; ``perturb`` is the pure step
inside; ``ldp_client.aio`` drives a client from asyncio, ``ldp_client.relay`` forwards for many devices, and
``ldp_client.testing`` has a server, a clock and coins for an app's own tests.

Names are loaded when they are first used: an app that imports this at its start pays when somebody contributes.
"""

from importlib import import_module

TYPE_CHECKING = False  # as in the module typing, which an import of this package need not load
if TYPE_CHECKING:
    from ldp_client.answering import perturb
    from ldp_client.classifier import Classifier
    from ldp_client.client import Client
    from ldp_client.delivery.sender import Event
    from ldp_client.errors import (
        ClientError,
        ConsentError,
        ModelUnavailableError,
        QuotaError,
        RefusedError,
        ServerError,
        StorageError,
        TransportError,
    )
    from ldp_client.ledger.receipts import Ledger, Receipt
    from ldp_client.policy import Policy
    from ldp_client.status import Status
    from ldp_client.storage.memory import MemoryStorage
    from ldp_client.storage.scoped import ScopedStorage

__all__ = [
    "Classifier",
    "Client",
    "ClientError",
    "ConsentError",
    "Event",
    "Ledger",
    "MemoryStorage",
    "ModelUnavailableError",
    "Policy",
    "QuotaError",
    "Receipt",
    "RefusedError",
    "ScopedStorage",
    "ServerError",
    "Status",
    "StorageError",
    "TransportError",
    "perturb",
]

_HOMES = {
    "Classifier": "classifier",
    "Client": "client",
    "Event": "delivery.sender",
    "Ledger": "ledger.receipts",
    "MemoryStorage": "storage.memory",
    "Policy": "policy",
    "Receipt": "ledger.receipts",
    "ScopedStorage": "storage.scoped",
    "Status": "status",
    "perturb": "answering",
}
"""Where the names live; the others are errors."""


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
