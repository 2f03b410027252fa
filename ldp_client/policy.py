"""Every limit of the client in one place: those that an app decides, those that it does not, and what each HTTP status
means for a report.

A report that has left once may arrive once only, so a doubtful answer always means: the same bytes again, later.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from ldp_protocols.errors import LdpError

RETRYABLE_STATUSES: Final = frozenset({401, 403, 407, 408, 425, 429, 500, 502, 503, 504, 507})
"""The report is fine and the way or the server is not. A refused token is here: somebody has to repair the
configuration, and the report can wait for that."""

SPLIT_STATUSES: Final = frozenset({413})
"""Too much at once: send half of it; a single report that is too large is quarantined."""

POISON_STATUSES: Final = frozenset({400, 415, 422})
"""Something in the upload can never be accepted: halve it until one report is left, and quarantine that one."""

TERMINAL_STATUSES: Final = frozenset({404, 409, 410, 451})
"""The campaign takes no reports any more (or never did); they are dropped, at 410 (it was deleted) at once, else once
that was heard twice, :data:`SECOND_WORD` apart."""

PASSING_CODES: Final = frozenset({"campaign-closed", "campaign-full", "window-over"})
"""Codes of single reports that a wrong clock may give: where all of an upload have one, it has to be heard twice."""

SECOND_WORD: Final = 86400.0
"""Seconds between the first final word and the one that counts: a server's clock or folder may be wrong for a day."""

RETRYABLE_CODES: Final = frozenset(
    {"campaign-not-open", "campaign-closing", "clock-unsettled", "window-not-open", "unknown-campaign", "not-found"}
)
"""Problem codes that mean "later" whatever their status: the campaign or the window opens some day, a closing is taken
back, a wrong clock, folder or path gets repaired."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The limits that an app decides; times are in seconds. The defaults suit an app on somebody's phone. Raises
    LdpError.

    A status outside the named sets, and a terminal or poison one that is not a problem document (a hotel's login page,
    a proxy's error page), is retried.

    Examples
    --------
    >>> Policy(first_delay=60.0).request_timeout
    30.0
    >>> Policy(first_delay=-1)
    Traceback (most recent call last):
    ldp_protocols.errors.LdpError: first_delay must be a number of seconds from 0 on, not -1
    """

    first_delay: float = 600.0
    """A background driver waits a uniformly random time up to this before the first send, so that the time of arrival
    says little about the time of the event."""
    relayed_first_delay: float = 6 * 3600.0
    """The same where the device names a relay: whoever fetched the campaign in these hours may have sent what comes."""
    backoff_base: float = 1.0
    backoff_longest: float = 3600.0
    """Full jitter: the n-th retry waits a uniformly random time below min(longest, base * 2^n)."""
    request_timeout: float = 30.0
    most_reports_per_upload: int = 4096
    most_bytes_per_upload: int = 1 << 19
    """Zeros that fill an upload up to the length of its campaign's come on top."""
    most_queued_reports: int = 100_000
    most_queued_bytes: int = 64 << 20
    report_age: float = 30 * 86400.0
    """A report is given up when it is this old, or its campaign has been closed for :data:`CLOSING_GRACE`, but never
    before :data:`EXPIRY_TRIES` tries have failed."""
    allow_plain_http: bool = False
    """Plain http is for loopback only, unless this is set."""

    def __post_init__(self) -> None:
        for limit in fields(self):
            name, value, whole = limit.name, getattr(self, limit.name), isinstance(limit.default, int)
            if isinstance(limit.default, bool):
                continue
            kinds = int if whole else (int, float)
            if isinstance(value, bool) or not isinstance(value, kinds) or not 0 <= value < float("inf"):
                raise LdpError("bad-policy", f"{name} must be {_KINDS[whole]} from 0 on, not {value!r}")
            if not value and name in _ABOVE_ZERO:
                raise LdpError("bad-policy", f"{name} must be above 0")

    @property
    def longest_wait(self) -> float:
        """No scheduled try lies further ahead than this, whatever a clock said when it was scheduled."""
        return max(self.first_delay, self.relayed_first_delay, self.backoff_longest, RETRY_AFTER_LONGEST)


_KINDS: Final = {True: "a whole number", False: "a number of seconds"}
_ABOVE_ZERO: Final = frozenset(
    {"backoff_base", "backoff_longest", "request_timeout", "most_reports_per_upload", "most_bytes_per_upload"}
)
"""A zero here would mean a device that never sends, or never rests."""

DEFAULT_POLICY: Final = Policy()

RETRY_AFTER_LONGEST: Final = 6 * 3600.0
"""A server's Retry-After is the least wait, up to this: no server silences a device for longer."""

CLOSING_GRACE: Final = 7 * 86400.0
"""An aggregator closes a campaign late rather than early, and one that is reopened may still take the report."""

EXPIRY_TRIES: Final = 10
"""A clock that was wrong must not throw away what could still arrive."""

CLOCK_TOLERANCE: Final = 86400.0
"""A campaign counts as open this long before ``opens`` and after ``closes``: the device's clock may be wrong."""

FETCH_TRIES: Final = 3
"""Campaign and model are asked for this often while the app waits."""

FETCH_BACKOFF_BASE: Final = 0.2
FETCH_LONGEST_WAIT: Final = 5.0
"""Whatever Retry-After says: the app is waiting."""

ASKING_WAIT: Final = 5.0
"""Seconds that a call waits before anybody has agreed, unless told otherwise: an app starts, or a person waits."""

STATE_AGE: Final = 86400.0
"""Seconds of a day, on which it is asked once how a campaign stands."""

STATE_RETRY: Final = 600.0
"""Seconds after which it is asked again where it could not be heard: an app without a network is not slowed."""

STATE_WAIT: Final = 5.0

LARGEST_ANSWER: Final = 1 << 20
"""To an upload: every report of the largest one refused, with its code."""

LARGEST_MODEL: Final = 64 << 20

MOST_QUARANTINED_REPORTS: Final = 100
"""Further ones are dropped, and counted with their reason."""

IDLE_CHECK: Final = 900.0
"""A background driver looks at the clock at least this often, so that a clock set back cannot strand it."""

CLOSE_TIMEOUT: Final = 2.0
"""close(), withdraw() and the interpreter's exit wait this long, in all, for sends under way, unless told otherwise."""

STORAGE_WAIT: Final = 10.0
"""Seconds to wait at most for another process or thread that holds the storage, whatever a call's ``timeout``."""

CHECKED_STORAGE_BYTES: Final = 1 << 20
"""A storage file up to this size (a device's has some ten thousand bytes) is checked before every change: a damaged
page may look empty, and a ledger must not look empty. A larger one, of a backend's users, is checked at least every
:data:`STORAGE_CHECK` seconds."""

STORAGE_CHECK: Final = 60.0

LARGEST_UPLOAD: Final = 1 << 20
"""Bytes of an upload that a relay's gateway takes."""

GATEWAY_TIMEOUT: Final = 30.0
"""Seconds of silence after which a gateway hangs up on a device."""

GATEWAY_RETRY_AFTER: Final = 30
"""Seconds after which a gateway that could not queue an upload asks for it again."""
