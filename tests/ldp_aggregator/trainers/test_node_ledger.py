"""The ledger of a node: what it holds at every moment, and what it lets be spent."""

import sqlite3
from contextlib import closing

import pytest

from ldp_aggregator.trainers.node_ledger import NodeLedger
from ldp_protocols import LdpError

ONE, OTHER = "1" * 43, "2" * 43


def test_one_transaction_of_a_ledger_keeps_all_others_out_and_waits_for_the_disk(tmp_path):
    """Else two processes would both find nothing, and both draw."""
    ledger = NodeLedger(tmp_path / "ledger.db")
    with ledger._transaction() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,), "FULL"
        other = sqlite3.connect(tmp_path / "ledger.db", timeout=0)
        with closing(other), pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")

    def fails():
        with ledger._transaction() as connection:
            connection.execute("INSERT INTO answers VALUES ('one', '1', x'00')")
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert ledger.share("one") is None, "all of it or nothing"


def test_rows_that_no_share_had_cost_nothing_again_in_the_same_campaign_alone(tmp_path):
    ledger = NodeLedger(tmp_path / "ledger.db")
    for key, share, other_rows, spent in (
        (f"{ONE} a", b"a", True, 1),
        (f"{ONE} b", b"b", True, 1),
        (f"{OTHER} c", b"c", True, 2),
        (f"{OTHER} d", b"d", False, 3),
        (f"{OTHER} d", b"another", False, 3),
    ):
        ledger.keep(key, 1.0, share, max_epsilon=3.0, other_rows=other_rows, digest=share * 2)
        assert ledger.spent == spent
    with pytest.raises(LdpError, match="3 of this node's 3 is spent"):
        ledger.keep(f"{ONE} e", 1.0, b"e", max_epsilon=3.0)
    assert (tmp_path / "ledger.db").stat().st_mode & 0o777 == 0o600
    assert (ledger.share(f"{OTHER} d"), ledger.digest(b"d"), ledger.digest(b"another")) == (b"d", b"dd", None)
    assert ledger.keep(f"{ONE} e", 1.0, b"e", max_epsilon=None) == b"e"


def test_a_ledger_without_tables_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "ledger.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE answers (campaign TEXT PRIMARY KEY, epsilon TEXT NOT NULL, share BLOB NOT NULL) "
            "STRICT, WITHOUT ROWID"
        )
        connection.execute("INSERT INTO answers VALUES (?, '1/2', x'00')", (ONE,))
    ledger = NodeLedger(path)
    assert (ledger.share(ONE), ledger.spent, ledger.digest(b"\0")) == (b"\0", 0.5, None)
    with pytest.raises(OSError, match="the ledger"):
        NodeLedger(tmp_path / "no" / "ledger.db").share(ONE)
