"""The promises of a store, whatever database is behind it. One suite of tests holds every implementation to it.

* A report's id and its count change in one durable transaction: :meth:`Counting.count` returns after the commit is on
  disk, or raises and has counted nothing.
* The same id counts once for as long as its ids are kept: until the campaign is sealed, which only a closed one can be.
* A campaign takes reports of devices or shares of nodes, never both: it is federated from its creation or from its
  first share, where that comes before any report and no ``max_reports`` was set. A node is named by its first
  token and has at most one share in a campaign, the last one it sent; how many different ones it ever sent is never
  forgotten.
* Campaign documents never change. Everything else is read inside the transaction that needs it, so any number of
  processes may share a store.

What is decided from what was read is in :mod:`ldp_aggregator.store.decisions`, once for all databases.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final, Protocol

from ldp_aggregator.counting.tally import Arrivals
from ldp_aggregator.node_statistics import Releases
from ldp_aggregator.store.clocks import LOG as LOG
from ldp_aggregator.store.clocks import Clock as Clock
from ldp_aggregator.store.clocks import Moment
from ldp_aggregator.store.clocks import utc_now as utc_now
from ldp_protocols import Campaign
from ldp_protocols.errors import LdpError
from ldp_protocols.wire import Block


def to_text(moment: datetime) -> str:
    """RFC 3339 in UTC: the one spelling of a time in databases and answers."""
    return moment.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


def from_text(text: str) -> datetime:
    """The inverse of :func:`to_text`."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


CONFLICTING: Final = "conflicting-report"
"""The id was counted before, with other bytes: the client answered twice."""
CLOSED: Final = "campaign-closed"
CLOSING: Final = "campaign-closing"
"""It is closed or full, or a window is over, and that may still be taken back: the device keeps its report."""
NOT_OPEN: Final = "campaign-not-open"
UNSETTLED: Final = "clock-unsettled"
"""The clock jumped: nothing is decided by it until it has settled."""
WINDOW_NOT_OPEN: Final = "window-not-open"
"""The device's clock is ahead; it sends the answer again."""
WINDOW_OVER: Final = "window-over"
UNKNOWN: Final = "unknown-campaign"
TAKES_SHARES: Final = "takes-shares"
TAKES_REPORTS: Final = "takes-reports"
REPLACED: Final = "replaced-before"
"""A node has sent as many other shares as the document lets it."""
REVOKED: Final = "wrong-token"
DELETED: Final = "campaign-deleted"
ABSENT: Final = frozenset({UNKNOWN, DELETED})
NOT_CLOSED: Final = "campaign-not-closed"
TOO_EARLY: Final = "too-early-to-seal"
SEALED: Final = "campaign-sealed"
OLDER: Final = "older-directory"
REFUSED: Final = frozenset({DELETED, NOT_CLOSED, TOO_EARLY, SEALED, OLDER})
"""Requests that a store never grants, however often it is tried."""
UNAVAILABLE: Final = "store-unavailable"
"""The database failed for this campaign, and for no other one of the group: nothing of it was counted."""
STATEMENT: Final = "statement-failed"
"""A statement failed in a database that answers: the rest of the work may succeed."""
DAMAGED: Final = "damaged-store"
"""A byte that was read is not the one that was written. What it belongs to is not used; ``fsck`` tells all."""

SALT_BYTES: Final = 32


class StoreError(LdpError):
    """The store, or its archive, could not do what was asked; nothing was changed. ``str`` says what to look at,
    ``code`` whether it is :data:`UNKNOWN`, one of :data:`REFUSED`, or a failure that may pass; ``file`` is the name of
    the file of ours that it is about.
    """

    def __init__(self, problem: str, code: str = UNAVAILABLE, *, file: str | None = None) -> None:
        super().__init__(code, problem)
        self.file = file


def unknown_campaign(campaign_id: str) -> StoreError:
    """No campaign has this id."""
    return StoreError(f"no campaign has the id {campaign_id}", UNKNOWN)


def deleted_campaign(campaign_id: str, moment: datetime) -> StoreError:
    """The campaign that had this id was deleted then, for good."""
    return StoreError(
        f"campaign {campaign_id} was deleted at {to_text(moment)}, and stays so; a draft with another title makes "
        "another campaign",
        DELETED,
    )


_NAMES: Final = ("sqlite_errorname", "sqlstate", "reason")
"""Attributes with the codes of SQLite's, PostgreSQL's and OpenSSL's errors."""
_MOST_CAUSES: Final = 4


def kind_of(error: BaseException) -> str:
    """Kind of a failure for the log: the classes and codes of an exception and of what caused it, and nothing of their
    texts, which may quote what a client sent.
    """
    kinds: list[str] = []
    seen: BaseException | None = error
    while seen is not None and len(kinds) < _MOST_CAUSES:
        words = [type(seen).__name__]
        words += [seen.code] if isinstance(seen, LdpError) else []
        words += filter(None, (_code(getattr(seen, name, None)) for name in _NAMES))
        if isinstance(seen, OSError) and seen.errno is not None:
            words += filter(None, [errno.errorcode.get(seen.errno)])
        kinds.append(" ".join(words))
        seen = seen.__cause__
    return " from ".join(kinds)


def told_of(error: BaseException) -> dict[str, str]:
    """The fields of a log's line about a failure: its kind, and the file of ours that it is about."""
    file = getattr(error, "file", None)
    if isinstance(error, OSError) and isinstance(error.filename, str | os.PathLike):
        file = Path(error.filename).name
    return {"reason": kind_of(error)} | ({} if file is None else {"file": file})


def _code(value: object) -> str:
    """A code as it stands in a library's table: capitals, digits and underscores; anything else is left out."""
    if isinstance(value, str) and len(value) <= 60 and value.isascii() and value.replace("_", "").isalnum():
        return value if value == value.upper() else ""
    return ""


@dataclass(frozen=True, slots=True)
class Submission:
    """The reports of one upload, decoded as far as their block heads.

    ``batch`` is the number of devices that a relay, known by its token, says the reports were mixed with.
    """

    campaign: Campaign
    blocks: tuple[Block, ...]
    batch: int | None = None

    @property
    def reports(self) -> int:
        return sum(block.count for block in self.blocks)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one upload. ``refused`` is the code of an upload that met no open campaign."""

    counted: int = 0
    duplicates: int = 0
    rejected: tuple[tuple[bytes, str], ...] = ()
    """Report id and code of each that never will be counted; ``places``: where it stands in the submission."""
    refused: str | None = None
    places: tuple[int, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class StoredShare:
    """The share that a node sent last, byte for byte."""

    node: str
    share: bytes
    received: datetime


@dataclass(frozen=True, slots=True)
class Shares:
    """The shares of a federated campaign as of one moment, sorted by node.

    ``salt`` is drawn when the campaign becomes federated, and secret from the nodes: it decides who is in which group.
    ``releases`` has every node that ever sent a share, sorted, those that withdrew it too.
    """

    salt: bytes
    members: tuple[StoredShare, ...]
    releases: tuple[tuple[str, Releases], ...] = ()


ShareDigests = tuple[tuple[str, bytes | None, Releases], ...]
"""Every node that ever sent a share, the SHA-256 of the one it has (None: withdrawn), and how many it sent; sorted."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A store's own account of where it comes from. Two stores never publish under one version.

    ``generation`` is a name drawn for it, ``version_floor`` a number that versions of models are above, ``is_copy``
    whether it is a backup, from which a store has to be made before it takes anything.
    """

    generation: str
    version_floor: int
    is_copy: bool


@dataclass(frozen=True, slots=True)
class Restored:
    """The tokens in use, and shares of nodes, that a restored store does not have any more."""

    tokens: int
    shares: int


@dataclass(frozen=True, slots=True)
class PublishedModel:
    """A model document; versions of a campaign count from 1. ``tag`` is the hash that it was stored with."""

    version: int
    document: str
    created: datetime
    tag: str = ""


class Counting(Protocol):
    """Reports in."""

    async def count(self, submissions: Sequence[Submission]) -> list[Outcome]:
        """Count a group of uploads in one durable transaction; one outcome each, in their order.

        What is wrong with a campaign fails no other: its uploads are refused as :data:`UNAVAILABLE`. Raises StoreError
        where the database takes no write at all.
        """

    async def beat(self) -> None:
        """Write, durably, and change nothing; raises StoreError if :meth:`count` would."""


@dataclass(frozen=True, slots=True)
class Life:
    """The times at which a campaign accepts reports: from ``opens`` until ``closes`` or until it was closed, whatever
    comes first.

    A closed one can be reopened until it was ``sealed``: then its ids are gone, for good.
    """

    opens: datetime | None
    closes: datetime | None
    closed: datetime | None
    sealed: datetime | None = None

    def is_over(self, now: datetime) -> bool:
        """It takes no report that is not known, and never will where that is not taken back."""
        return self.closed is not None or (self.closes is not None and now >= self.closes)

    def refusal(self, moment: Moment) -> str | None:
        """The code that a report meets which is not known, None while the campaign is open. :data:`CLOSED` is for good:
        sealed, or closed for the grace period that this process saw.

        ``_OPEN`` of the store for PostgreSQL says in SQL whether there is one.
        """
        if self.closed is not None:
            return CLOSED if self.sealed is not None or moment.is_past(self.closed) else CLOSING
        if not moment.settled and (self.opens is not None or self.closes is not None):
            return UNSETTLED
        if self.is_over(moment.now):
            return CLOSING
        return NOT_OPEN if self.opens is not None and moment.now < self.opens else None


@dataclass(frozen=True, slots=True)
class Terms:
    """The demands of a campaign on those who send to it, beside its document."""

    federated: bool
    uploads_need: str | None


STANDINGS: Final = ("not-yet", "open", "closing", "closed", "full", "deleted")


@dataclass(frozen=True, slots=True)
class Standing:
    """The public account of how a campaign stands, a word of :data:`STANDINGS`, and of when it ends or ended."""

    word: str
    end: datetime | None = None

    def encode(self) -> bytes:
        """Public form: JSON of less than 200 bytes, with the day of the end."""
        day = {} if self.end is None else {"ends": f"{self.end.astimezone(timezone.utc):%Y-%m-%d}"}
        return json.dumps({"state": self.word, **day}).encode()


@dataclass(frozen=True, slots=True)
class CampaignState:
    """A campaign and what can change beside its document."""

    id: str
    title: str
    created: datetime
    life: Life
    max_reports: int | None
    reports: int
    model_version: int | None
    federated: bool = False
    """True if it takes shares of nodes, and no reports; once it does, it always will."""
    shares: int = 0
    arrivals: Arrivals = field(default_factory=Arrivals)
    over_since: datetime | None = None
    """Time at which it was first seen to be past its end, or full."""
    uploads_need: str | None = None
    """The scope of the token that uploads have to show; None if anybody may upload."""
    damaged: bool = False
    """True if its row, tally or model is damaged: only its id is shown."""

    def status(self, now: datetime) -> str:
        """``waiting``, ``open``, ``closed`` or ``damaged``."""
        if self.damaged:
            return "damaged"
        return {NOT_OPEN: "waiting", None: "open"}.get(self.life.refusal(Moment(now)), "closed")

    def to_json(self, now: datetime) -> dict[str, Any]:
        """JSON of the admin API and of ``campaign list --json``."""
        return {
            "id": self.id,
            "title": self.title,
            "status": self.status(now),
            "created": to_text(self.created),
            **{name: moment and to_text(moment) for name, moment in asdict(self.life).items()},
            "max_reports": self.max_reports,
            "reports": self.reports,
            "counted_twice": self.arrivals.overlap,
            "counted_twice_at_most": self.arrivals.twice,
            "model_version": self.model_version,
            "federated": self.federated,
            "shares": self.shares if self.federated else None,
            "uploads_need_token": self.uploads_need,
        }


SCOPES: Final = ("admin", "collector", "node", "relay", "device")

UPLOADING: Final = {"device": ("device", "relay"), "relay": ("relay",)}
"""The kinds of upload token that a campaign may ask for, and the scopes of tokens that then open it."""

ASKED: Final = "asked"
"""An act that was begun: it is in progress, or nobody lived to say how it ended."""
DONE: Final = "done"
FAILED: Final = "failed"


@dataclass(frozen=True, slots=True)
class StoredToken:
    """A token as the store knows it: the SHA-256 of its text, never the text.

    ``campaigns`` are the ids it is limited to, None for all. A token of scope ``node`` speaks for ``node``, which is
    the name of the first token of that node.
    """

    name: str
    scope: str
    digest: bytes
    created: datetime
    revoked: datetime | None = None
    expires: datetime | None = None
    campaigns: tuple[str, ...] | None = None
    speaks_for: str | None = None

    @property
    def node(self) -> str:
        """The node whose shares it sends and withdraws."""
        return self.speaks_for or self.name

    def is_in_use(self, now: datetime) -> bool:
        """True if it is neither revoked nor expired."""
        return self.revoked is None and (self.expires is None or now < self.expires)

    def is_for(self, campaign_id: str | None) -> bool:
        """It opens what is about this campaign; None is what is about no single one."""
        return self.campaigns is None or campaign_id in self.campaigns


@dataclass(frozen=True, slots=True)
class Act:
    """An administrative act: who did what to which campaign, and what else there is to say of it, never a secret."""

    actor: str
    act: str
    campaign: str | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class LoggedAct:
    """An entry of the log; they are numbered in their order and never changed, but for their outcome."""

    number: int
    moment: datetime
    act: Act
    outcome: str

    def to_json(self) -> dict[str, Any]:
        """JSON of ``ldp-aggregator status --log --json``."""
        return {"number": self.number, "time": to_text(self.moment), **asdict(self.act), "outcome": self.outcome}
