"""The rule for what a line of a log may hold: words of our own, classes and codes of exceptions, a campaign's id.

No id, digest, token, path or value fits, in whatever spelling: they have digits, or stand beside no exception's class.
"""

import errno
import json
import logging
import re
import sysconfig
from pathlib import Path

from ldp_aggregator.server.log import JsonFormatter

ROOT = Path(__file__).resolve().parents[2]
COMPILED = ("uvloop/", "asyncpg/")
"""Where code stands that was compiled from Cython, by its package."""
CODE_IS_IN = (str(ROOT), sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), "<frozen", *COMPILED)
EVENT = re.compile(r"[A-Za-z' ]{1,60}|a message of [a-z.]{1,40}")
CAMPAIGN = re.compile(r"[A-Za-z0-9_-]{43}")
REASON = re.compile(r"the limit is \d+, connections takes \d+")
NAMED_AS_ERROR = re.compile(r"[A-Z][A-Za-z]{1,40}Error")
OUR_CODE = re.compile(r"[a-z]+(-[a-z]+)*")
CODES_OF_LIBRARIES = re.compile(r"SQLITE_[A-Z_]+|[0-9A-Z]{5}|[A-Z]+(_[A-Z]+)+")
FIELDS = {
    "time": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00"),
    "level": re.compile(r"debug|info|warning|error|critical"),
    "kind": re.compile(r"[A-Za-z ]{1,40}"),
    "address": re.compile(r"[\w.:\[\]]+:\d+"),
    "file": re.compile(r"[\w-]{1,80}(?:\.[a-z0-9]{2,10})?"),
}
OURS = "ldp_aggregator"


def strange(line):
    """What a line of a server's log says that no log may, or an empty list."""
    told = json.loads(line)
    found = [f"event {told['event']!r}"] if not EVENT.fullmatch(told["event"]) else []
    for name, value in told.items():
        if name == "reason" and not (REASON.fullmatch(value) or _only_kinds(value)):
            found.append(f"reason {value!r}")
        elif name == "campaign" and not CAMPAIGN.fullmatch(value):
            found.append(f"campaign {value!r}")
        elif name == "trace":
            found += [f"place {place!r}" for place in value if not place.startswith(CODE_IS_IN)]
        elif name in FIELDS and not FIELDS[name].fullmatch(value):
            found.append(f"{name} {value!r}")
    return found + [f"field {name}" for name in told.keys() - {"event", "reason", "campaign", "trace", *FIELDS}]


def _only_kinds(reason):
    """Whether a reason is classes of exceptions, each with codes, one because of the next."""
    known = {one.__name__ for one in _exceptions(BaseException)}
    return all(
        # A server has imported what a test has not: asyncpg's errors, say.
        (words[0] in known or NAMED_AS_ERROR.fullmatch(words[0])) and all(_is_code(word) for word in words[1:])
        for words in (kind.split(" ") for kind in reason.split(" from "))
    )


def _is_code(word):
    return bool(OUR_CODE.fullmatch(word) or CODES_OF_LIBRARIES.fullmatch(word) or word in errno.errorcode.values())


def _exceptions(kind):
    yield kind
    for one in kind.__subclasses__():
        yield from _exceptions(one)


class Listening(logging.Handler):
    """Remembers what of a server's log was strange, whatever test made it say so."""

    def __init__(self):
        super().__init__()
        self.setFormatter(JsonFormatter())
        self.found = []

    def emit(self, record):
        self.found += strange(self.format(record))
