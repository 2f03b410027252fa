"""The log, as lines of JSON: what happened, to which campaign; never a value, a report's id, a token or an address of a
client.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any, Final

FIELDS: Final = ("campaign", "reason", "kind", "file", "address")
"""Fields of a log line beside its text; others are left out. ``file`` and ``address`` are the server's own."""

_OURS: Final = "ldp_aggregator"


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": _event(record),
        }
        line |= {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        if record.exc_info and record.exc_info[1] is not None:
            # Places in the code only: an exception's text may quote what a client sent.
            line["trace"] = [f"{f.filename}:{f.lineno} {f.name}" for f in traceback.extract_tb(record.exc_info[2])]
        return json.dumps(line, ensure_ascii=False)


def _event(record: logging.LogRecord) -> str:
    """Say what happened. A library's message may repeat an exception's, and that what a client sent: of those only the
    pattern is told, and nothing if it was filled in already.
    """
    if record.name.partition(".")[0] == _OURS:
        return record.getMessage()
    return str(record.msg) if record.args else f"a message of {record.name}"


@contextmanager
def logged_to_standard_error(level: str) -> Iterator[None]:
    """Send everything that this process logs to standard error, for the service manager to keep; then log as before."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    root, ours = logging.getLogger(), logging.getLogger(_OURS)
    before = root.handlers[:], root.level, ours.level
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    ours.setLevel(level.upper())
    try:
        yield
    finally:
        root.handlers[:] = before[0]
        root.setLevel(before[1])
        ours.setLevel(before[2])
