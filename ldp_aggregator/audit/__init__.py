"""A black-box audit: how much does a client really tell? Measured on the bytes it sends, by its own reading of them.

Nothing here imports the mechanisms, or anything else that the audited client may share: documents are read as JSON,
uploads as msgpack.
"""

from ldp_aggregator.audit.black_box import BlackBoxError, Client, Person, command_client
from ldp_aggregator.audit.verdict import Audit, Finding, audit

__all__ = ["Audit", "BlackBoxError", "Client", "Finding", "Person", "audit", "command_client"]
