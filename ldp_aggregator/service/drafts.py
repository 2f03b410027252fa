"""Drafts as authors write them: JSON or TOML, compiled into a campaign."""

from __future__ import annotations

import sys
from datetime import date, datetime, timezone
from typing import Any, Final

from protocols import Campaign, DraftError
from protocols.document.authored import MODEL

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


ANOTHER_KIND: Final = "this draft was published before and not as federated; change its title to publish another"


def compile_draft(text: bytes, *, toml: bool) -> Campaign:
    """Raises DraftError, which names the field and says what would be right."""
    return Campaign.compile(_parse_toml(text) if toml else text)


def check_kind(campaign: Campaign, *, federated: bool, max_reports: int | None) -> None:
    """Refuse what a federated campaign cannot be. Raises DraftError."""
    if federated and campaign.asks != MODEL:
        raise DraftError("asks", f'a federated campaign asks for a "{MODEL}", not for "{campaign.asks}"')
    if federated and max_reports is not None:
        raise DraftError("max_reports", "a federated campaign takes shares of nodes and no reports; leave it out")


def _parse_toml(text: bytes) -> dict[str, Any]:
    try:
        draft: dict[str, Any] = tomllib.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise DraftError("draft", f"not TOML in UTF-8 ({error})") from None
    return {name: _plain(value) for name, value in draft.items()}


def _plain(value: Any) -> Any:
    """TOML has times of its own; a draft has them as text in UTC. A time without zone stays as it is and is refused."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, (date, datetime)) else value
