"""The client in an app: answers a campaign under local differential privacy, and classifies with what was learned.

Standard library and msgpack only. ``Device`` is an install: its secret, its ledger, its campaigns, one sender.
``Classifier`` needs no ledger; ``perturb`` is the pure step inside. ``ldp_client.aio`` drives a device from asyncio,
``ldp_client.manual`` by an app's own network code; ``ldp_client.testing`` is for an app's own tests. docs/client.md is
the guide.

Names are loaded when they are first used: an app that imports this at its start pays when somebody contributes.
"""

from ldp_protocols.names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__spec__)
