"""From drafts, as their authors wrote them in TOML or JSON, to campaigns."""

from __future__ import annotations

import sys
from datetime import date, datetime, timezone
from typing import Any, Final

from ldp_protocols import Campaign, DraftError
from ldp_protocols.document.authored import MODEL
from ldp_protocols.fields import parse_json

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ANOTHER_KIND: Final = "this draft was published before and not as federated; change its title to publish another"


def compile_draft(text: bytes, *, toml: bool) -> Campaign:
    """Raises DraftError, which names the field and says what would be right."""
    return Campaign.compile(_parse_toml(text) if toml else text)


def parse_draft(text: bytes, *, toml: bool) -> dict[str, Any]:
    """Return a draft as its author wrote it, not checked yet. Raises DraftError."""
    draft = _parse_toml(text) if toml else parse_json(text, DraftError)
    if not isinstance(draft, dict):
        raise DraftError("draft", "must be an object, with label and features")
    return draft


def check_kind(campaign: Campaign, *, federated: bool, max_reports: int | None) -> None:
    """Refuse what a federated campaign cannot be. Raises DraftError."""
    if federated and campaign.asks != MODEL:
        raise DraftError("asks", f'a federated campaign asks for a "{MODEL}", not for "{campaign.asks}"')
    if federated and campaign.windows is not None:
        raise DraftError("windows", "are for devices, each of which answers in one; a federated campaign has none")
    if federated and campaign.issuer is not None:
        raise DraftError("issuer", "is of answers of devices; a federated campaign has none, its nodes have tokens")
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
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, (date, datetime)) else value
