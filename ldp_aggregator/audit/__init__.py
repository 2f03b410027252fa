"""A black-box audit: how much does a client really tell? Measured on everything it sends, by its own reading of it.

Nothing here imports the mechanisms, or anything else that the audited client may share: documents are read as JSON,
uploads as msgpack.
"""

from ldp_aggregator.audit.asking.black_box import (
    Answer,
    BlackBoxError,
    Client,
    Person,
    UnreadableRecord,
    command_client,
)
from ldp_aggregator.audit.verdict import Audit, Finding, audit

__all__ = [
    "Answer",
    "Audit",
    "BlackBoxError",
    "Client",
    "Finding",
    "Person",
    "UnreadableRecord",
    "audit",
    "command_client",
]
