"""What both sides must agree on: campaign document, questions, mechanisms, exact randomness, report wire format."""

from protocols.document.campaign import Campaign
from protocols.document.questions import Question
from protocols.errors import (
    DocumentError,
    DraftError,
    ModelError,
    PayloadError,
    ProtocolError,
    RecordError,
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
    "Mechanism",
    "ModelError",
    "PayloadError",
    "ProtocolError",
    "Question",
    "RecordError",
    "Report",
    "ScriptedCoins",
    "SystemCoins",
    "UploadError",
    "decode_upload",
    "encode_upload",
]
