"""What an app embeds: answers a campaign under local differential privacy, and classifies with what was learned.

Standard library and msgpack only. ``Device`` is an install: its secret, its ledger, its campaigns, one sender.
``Classifier`` stands apart and needs no ledger; ``perturb`` is the pure step inside. ``ldp_client.aio`` drives a device
from asyncio, ``ldp_client.relay`` forwards for many devices, and ``ldp_client.testing`` has a server, a clock and coins
for an app's own tests. docs/client.md is the guide.

Names are loaded when they are first used: an app that imports this at its start pays when somebody contributes.
"""

from importlib import import_module

TYPE_CHECKING = False  # as in the module typing, which an import of this package need not load
if TYPE_CHECKING:
    from ldp_client.answering import perturb
    from ldp_client.campaign import DeviceCampaign
    from ldp_client.classifier import Classifier
    from ldp_client.delivery.notices import Event
    from ldp_client.device import Device
    from ldp_client.errors import (
        ClientError,
        ConfigurationError,
        ConsentError,
        ModelUnavailableError,
        NotFetchedError,
        QuotaError,
        RefusedError,
        ServerError,
        StorageError,
        TransportError,
    )
    from ldp_client.ledger.receipts import Ledger, Receipt
    from ldp_client.ledger.sent import SentReport
    from ldp_client.policy import Policy
    from ldp_client.problems import Problem
    from ldp_client.status import DeviceStatus, Status, Withdrawal
    from ldp_client.storage.memory import MemoryStorage
    from protocols.errors import DocumentError, LdpError, ModelError, RecordError

__all__ = [
    "Classifier",
    "ClientError",
    "ConfigurationError",
    "ConsentError",
    "Device",
    "DeviceCampaign",
    "DeviceStatus",
    "DocumentError",
    "Event",
    "LdpError",
    "Ledger",
    "MemoryStorage",
    "ModelError",
    "ModelUnavailableError",
    "NotFetchedError",
    "Policy",
    "Problem",
    "QuotaError",
    "Receipt",
    "RecordError",
    "RefusedError",
    "SentReport",
    "ServerError",
    "Status",
    "StorageError",
    "TransportError",
    "Withdrawal",
    "perturb",
]

_HOMES = {
    "Classifier": "ldp_client.classifier",
    "Device": "ldp_client.device",
    "DeviceCampaign": "ldp_client.campaign",
    "DeviceStatus": "ldp_client.status",
    "DocumentError": "protocols.errors",
    "Event": "ldp_client.delivery.notices",
    "LdpError": "protocols.errors",
    "Ledger": "ldp_client.ledger.receipts",
    "MemoryStorage": "ldp_client.storage.memory",
    "ModelError": "protocols.errors",
    "Policy": "ldp_client.policy",
    "Problem": "ldp_client.problems",
    "Receipt": "ldp_client.ledger.receipts",
    "RecordError": "protocols.errors",
    "SentReport": "ldp_client.ledger.sent",
    "Status": "ldp_client.status",
    "Withdrawal": "ldp_client.status",
    "perturb": "ldp_client.answering",
}
"""Where the names live; the others are errors of this package."""


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import_module("ldp_client.errors")  # First: it can say what is in the way where ``protocols`` is another package.
    value: object = getattr(import_module(_HOMES.get(name, "ldp_client.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
