"""What both sides must agree on: campaign document, questions, mechanisms, exact randomness, report wire format.

Names are loaded when they are first used: a device that only looks at its ledger reads no campaign.
"""

from importlib import import_module

TYPE_CHECKING = False  # as in the module typing, which an import of this package need not load
if TYPE_CHECKING:
    from protocols.document.campaign import Campaign
    from protocols.document.questions import Question
    from protocols.errors import (
        DocumentError,
        DraftError,
        LdpError,
        ModelError,
        NotInstalledError,
        PayloadError,
        ProtocolError,
        RecordError,
        SecretError,
        UploadError,
    )
    from protocols.exact.coins import SYSTEM_COINS, Coins, ScriptedCoins, SystemCoins
    from protocols.mechanisms import Mechanism
    from protocols.receiving.decoding import decode_upload
    from protocols.wire.reports import Report
    from protocols.wire.upload import encode_upload

__all__ = [
    "SYSTEM_COINS",
    "Campaign",
    "Coins",
    "DocumentError",
    "DraftError",
    "LdpError",
    "Mechanism",
    "ModelError",
    "NotInstalledError",
    "PayloadError",
    "ProtocolError",
    "Question",
    "RecordError",
    "Report",
    "ScriptedCoins",
    "SecretError",
    "SystemCoins",
    "UploadError",
    "decode_upload",
    "encode_upload",
]

_HOMES = {
    "Campaign": "protocols.document.campaign",
    "Coins": "protocols.exact.coins",
    "DocumentError": "protocols.errors",
    "DraftError": "protocols.errors",
    "LdpError": "protocols.errors",
    "Mechanism": "protocols.mechanisms",
    "ModelError": "protocols.errors",
    "NotInstalledError": "protocols.errors",
    "PayloadError": "protocols.errors",
    "ProtocolError": "protocols.errors",
    "Question": "protocols.document.questions",
    "RecordError": "protocols.errors",
    "Report": "protocols.wire.reports",
    "SYSTEM_COINS": "protocols.exact.coins",
    "ScriptedCoins": "protocols.exact.coins",
    "SecretError": "protocols.errors",
    "SystemCoins": "protocols.exact.coins",
    "UploadError": "protocols.errors",
    "decode_upload": "protocols.receiving.decoding",
    "encode_upload": "protocols.wire.upload",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
