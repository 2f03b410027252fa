"""What an app embeds: answers a campaign under local differential privacy, and classifies with what was learned.

Standard library and msgpack only. ``Client`` is the whole life of a device in a campaign; ``perturb`` is the pure step
inside; ``ldp_client.aio`` drives a client from asyncio, ``ldp_client.relay`` forwards for many devices, and
``ldp_client.testing`` has a server, a clock and coins for an app's own tests.
"""

from ldp_client.classifier import Classifier
from ldp_client.client import Client, Status
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
from ldp_client.ledger import Ledger, Receipt
from ldp_client.perturb import perturb
from ldp_client.policy import Policy
from ldp_client.sender import Event
from ldp_client.storage import MemoryStorage, ScopedStorage

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
