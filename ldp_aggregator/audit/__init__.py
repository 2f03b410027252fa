"""A black-box audit: how much does a client really tell? Measured on everything it sends, by its own reading of it.

Nothing here imports the mechanisms, or anything else that the audited client may share: documents are read as JSON,
uploads as msgpack.
"""

from ldp_aggregator.audit.asking.black_box import Answer as Answer
from ldp_aggregator.audit.asking.black_box import Client as Client
from ldp_aggregator.audit.asking.black_box import Dialogue as Dialogue
from ldp_aggregator.audit.asking.black_box import Person as Person
from ldp_aggregator.audit.asking.black_box import Stopwatch as Stopwatch
from ldp_aggregator.audit.asking.black_box import Talk as Talk
from ldp_aggregator.audit.asking.black_box import UnreadableRecord as UnreadableRecord
from ldp_aggregator.audit.asking.black_box import command_client as command_client
from ldp_aggregator.audit.asking.black_box import command_stopwatch as command_stopwatch
from ldp_aggregator.audit.asking.black_box import command_talk as command_talk
from ldp_aggregator.audit.verdict import Audit as Audit
from ldp_aggregator.audit.verdict import Finding as Finding
from ldp_aggregator.audit.verdict import audit as audit
