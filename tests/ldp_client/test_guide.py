"""The guide names every code and every status that the code knows."""

from pathlib import Path

import ldp_client
from ldp_client.errors import REFUSALS, STORAGE_PROBLEMS, TRANSPORT_PROBLEMS
from ldp_client.ledger import FATES
from ldp_client.policy import POISON_STATUSES, RETRYABLE_CODES, RETRYABLE_STATUSES, SPLIT_STATUSES, TERMINAL_STATUSES

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "client.md").read_text(encoding="utf-8")
STATUSES = RETRYABLE_STATUSES | SPLIT_STATUSES | POISON_STATUSES | TERMINAL_STATUSES


def test_every_code_error_and_status_is_in_the_guide():
    codes = {*REFUSALS, *TRANSPORT_PROBLEMS, *FATES, *RETRYABLE_CODES}
    assert [code for code in sorted(codes) if f"`{code}`" not in GUIDE] == []
    problems = [code for code in STORAGE_PROBLEMS if f"`{code}`" not in GUIDE]
    assert [code for code in problems if f"`{code.removeprefix('storage')}`" not in GUIDE] == []
    errors = [name for name in ldp_client.__all__ if name.endswith("Error") and name != "LdpError"]
    assert all(issubclass(getattr(ldp_client, name), ldp_client.LdpError) for name in errors)
    assert [name for name in errors if f"`{name}`" not in GUIDE and f"ldp_client.{name}" not in GUIDE] == []
    table = GUIDE.partition("What delivery makes of an answer")[2]
    assert [status for status in sorted(STATUSES) if str(status) not in table] == []
