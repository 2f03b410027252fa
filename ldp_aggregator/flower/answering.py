"""A node's half of the round: is this the campaign that was agreed to, what is the share, and is it on disk.

No flwr here: the client app hands in what came with the query and its node's settings, and sends what comes back.

The answers are in one SQLite file: one share for each campaign, and the epsilon of all of them. A share is on disk
before it is handed out, and the same bytes are handed out ever after. Several processes may use one file; the first of
them that writes a share decides, and a share that was drawn and not written was seen by nobody.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Final

import pandas as pd

from ldp_aggregator.flower import messages
from ldp_aggregator.flower.settings import NodeSettings
from ldp_aggregator.trainers.federation.state import node_statistics
from ldp_aggregator.trainers.schemas import Schema, read_table
from ldp_protocols.campaign import Campaign
from ldp_protocols.document.authored import MODEL
from ldp_protocols.errors import DocumentError
from ldp_protocols.exact import exact_epsilon


def answer(settings: NodeSettings, values: Mapping[str, object]) -> dict[str, bytes]:
    """The values of the answer to a query: this node's share, the same bytes whenever it is asked.

    Raises LdpError.
    """
    campaign = _agreed_campaign(settings, messages.document_in(values))
    ledger = Ledger(settings.ledger)
    share = ledger.share(campaign.id)
    if share is None:
        drawn = _drawn_share(settings, campaign)
        share = ledger.keep(campaign.id, campaign.privacy.epsilon, drawn, max_epsilon=settings.max_epsilon)
    return {"share": share}


def _agreed_campaign(settings: NodeSettings, document: bytes) -> Campaign:
    """The campaign of document bytes whose hash is the id that the node agreed to. Raises LdpError."""
    try:
        campaign = Campaign.parse(document, settings.campaign_id)
    except DocumentError as error:
        code = messages.OTHER_CAMPAIGN if error.code == "wrong-hash" else messages.UNREADABLE
        raise messages.refused(code, str(error)) from None
    if campaign.asks != MODEL:
        raise messages.refused(
            messages.UNREADABLE, f'the campaign asks for "{campaign.asks}"; nodes answer for a "{MODEL}"'
        )
    return campaign


def _drawn_share(settings: NodeSettings, campaign: Campaign) -> bytes:
    """A fresh share of the node's table. Raises LdpError, which tells the server nothing of the rows."""
    schema = Schema.of_campaign(campaign)
    try:
        present = set(pd.read_csv(settings.table, nrows=0).columns)
        for name in (*schema.input_names, schema.label.name):
            if name not in present:
                raise messages.refused(messages.OTHER_SCHEMA, f"the node's table has no column {name!r}")
        return node_statistics(campaign, *read_table(settings.table, schema))
    except (OSError, ValueError) as error:
        raise messages.refused(messages.NOT_READY) from error


_BUSY_SECONDS: Final = 30.0
_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS answers "
    "(campaign TEXT PRIMARY KEY, epsilon TEXT NOT NULL, share BLOB NOT NULL) STRICT, WITHOUT ROWID"
)


class Ledger:
    """The file at ``path``, in a folder that exists; the file is made where there is none."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def share(self, campaign_id: str) -> bytes | None:
        """The share that was handed out, None where there is none."""
        with self._transaction() as connection:
            return _share(connection, campaign_id)

    def keep(self, campaign_id: str, epsilon: float, share: bytes, *, max_epsilon: float) -> bytes:
        """Write the share down and return it, or the one that is there. Raises LdpError above the cap."""
        with self._transaction() as connection:
            kept = _share(connection, campaign_id)
            if kept is not None:
                return kept
            _book(connection, campaign_id, epsilon, share, max_epsilon)
        return share

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Everything in it, or nothing; on disk when it is left."""
        try:
            with closing(sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)) as connection:
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(_TABLE)
                yield connection
                connection.execute("COMMIT")  # Closing without it rolls back.
        except sqlite3.Error as error:
            raise messages.refused(messages.NOT_READY) from OSError(f"the ledger {self._path}: {error}")


def _share(connection: sqlite3.Connection, campaign_id: str) -> bytes | None:
    found: tuple[bytes] | None = connection.execute(
        "SELECT share FROM answers WHERE campaign = ?", (campaign_id,)
    ).fetchone()
    return None if found is None else found[0]


def _book(connection: sqlite3.Connection, campaign_id: str, epsilon: float, share: bytes, max_epsilon: float) -> None:
    cost = exact_epsilon(epsilon)
    spent = sum((Fraction(text) for (text,) in connection.execute("SELECT epsilon FROM answers")), Fraction(0))
    if spent + cost > exact_epsilon(max_epsilon):
        raise messages.refused(
            messages.ABOVE_CAP,
            f"the campaign costs epsilon {epsilon:g}; {float(spent):g} of this node's {max_epsilon:g} is spent",
        )
    connection.execute("INSERT INTO answers VALUES (?, ?, ?)", (campaign_id, str(cost), share))
