"""The client in an app: answers a campaign under local differential privacy, and classifies with what was learned.

Standard library and msgpack only. ``Device`` is an install: its secret, its ledger, its campaigns, one sender.
``Classifier`` stands apart and needs no ledger; ``perturb`` is the pure step inside. ``ldp_client.aio`` drives a device
from asyncio, ``ldp_client.relay`` forwards for many devices, and ``ldp_client.testing`` has a server, a clock and coins
for an app's own tests. docs/client.md is the guide.

Names are loaded when they are first used: an app that imports this at its start pays when somebody contributes.
"""

try:
    from protocols.names import loaded_on_use
except ImportError as error:
    import protocols

    found = protocols.__file__ or list(protocols.__path__)
    raise ImportError(
        f"ldp_client needs its own package 'protocols', but Python finds {found} first: rename that file or folder, "
        "or move it into a package of your app",
        name="protocols",
    ) from error

with loaded_on_use(globals()):
    from ldp_client.answering import perturb as perturb
    from ldp_client.campaign import DeviceCampaign as DeviceCampaign
    from ldp_client.classifier import Classifier as Classifier
    from ldp_client.delivery.machine import Event as Event
    from ldp_client.delivery.rights import SentReport as SentReport
    from ldp_client.delivery.status import DeviceStatus as DeviceStatus
    from ldp_client.delivery.status import Status as Status
    from ldp_client.delivery.status import Withdrawal as Withdrawal
    from ldp_client.device import Device as Device
    from ldp_client.errors import ClientError as ClientError
    from ldp_client.errors import ConfigurationError as ConfigurationError
    from ldp_client.errors import ConsentError as ConsentError
    from ldp_client.errors import ModelUnavailableError as ModelUnavailableError
    from ldp_client.errors import NotFetchedError as NotFetchedError
    from ldp_client.errors import QuotaError as QuotaError
    from ldp_client.errors import RefusedError as RefusedError
    from ldp_client.errors import ServerError as ServerError
    from ldp_client.errors import StorageError as StorageError
    from ldp_client.errors import TransportError as TransportError
    from ldp_client.ledger import Ledger as Ledger
    from ldp_client.ledger import Receipt as Receipt
    from ldp_client.policy import Policy as Policy
    from ldp_client.problems import Problem as Problem
    from ldp_client.storage.memory import MemoryStorage as MemoryStorage
    from protocols.errors import DocumentError as DocumentError
    from protocols.errors import LdpError as LdpError
    from protocols.errors import ModelError as ModelError
    from protocols.errors import RecordError as RecordError
