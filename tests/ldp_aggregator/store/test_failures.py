"""A failure in a log is classes and codes: no text of an exception, which may quote what a client sent."""

import errno
import sqlite3
import ssl

import pytest

from ldp_aggregator.store import StoreError
from ldp_aggregator.store.contract import kind_of

SAID = "what a client said"


def with_code(error, **codes):
    for name, value in codes.items():
        setattr(error, name, value)
    return error


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.ENOSPC, SAID), "OSError ENOSPC"),
        (ValueError(SAID), "ValueError"),
        (with_code(sqlite3.OperationalError(SAID), sqlite_errorname="SQLITE_FULL"), "OperationalError SQLITE_FULL"),
        (with_code(RuntimeError(SAID), sqlstate="53300"), "RuntimeError 53300"),
        (with_code(ssl.SSLError(SAID), reason="CERTIFICATE_EXPIRED"), "SSLError CERTIFICATE_EXPIRED"),
        (with_code(RuntimeError(SAID), reason=SAID), "RuntimeError"),
        (with_code(RuntimeError(SAID), reason="lower_case"), "RuntimeError"),
        (with_code(RuntimeError(SAID), reason="A" * 61), "RuntimeError"),
        (with_code(RuntimeError(SAID), reason=7), "RuntimeError"),
    ],
)
def test_a_failure_is_told_by_its_class_and_its_code(error, told):
    assert kind_of(error) == told


def test_so_are_its_causes_up_to_four():
    error = OSError(errno.EIO, SAID)
    for _ in range(5):
        outer = StoreError(SAID)
        outer.__cause__, error = error, outer
    assert kind_of(error) == " from ".join(["StoreError"] * 4)
    assert kind_of(error.__cause__.__cause__) == "StoreError from StoreError from StoreError from OSError EIO"
