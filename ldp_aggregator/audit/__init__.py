"""A black-box audit: how much does a client really tell? Measured on everything it sends, by its own reading of it.

Nothing here imports the mechanisms, or anything else that the audited client may share: documents are read as JSON,
uploads as msgpack.
"""

from ldp_aggregator.audit.asking.black_box import (
    Answer,
    BlackBoxError,
    Client,
    Person,
    Stopwatch,
    UnreadableRecord,
    command_client,
    command_stopwatch,
)
from ldp_aggregator.audit.verdict import Audit, Finding, audit

__all__ = [
    "Answer",
    "Audit",
    "BlackBoxError",
    "Client",
    "Finding",
    "Person",
    "Stopwatch",
    "UnreadableRecord",
    "audit",
    "command_client",
    "command_stopwatch",
]
