"""What both sides must agree on: campaign document, questions, mechanisms, exact randomness, report wire format."""

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
from protocols.wire.reports import Report
from protocols.wire.upload import decode_upload, encode_upload

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
