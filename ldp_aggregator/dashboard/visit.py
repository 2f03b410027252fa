"""One request of a person: who sent it, and what form came with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from aiohttp import web

from ldp_aggregator.dashboard.session import Session, server_key


@dataclass(frozen=True)
class Visit:
    """Passed to every page's handler. ``session`` is None where a page needs none; ``form`` is that of a session, and
    ``actor`` who the log of acts says that it was.
    """

    request: web.Request
    session: Session | None = None
    form: Mapping[str, str] = field(default_factory=dict)
    actor: str = ""

    @property
    def campaign_id(self) -> str:
        """The id in the path."""
        return self.request.match_info["id"]

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.query

    def common(self) -> dict[str, object]:
        """What every page of a session shows: its form token, and where it is."""
        token = "" if self.session is None else self.session.form_token(server_key())
        return {"session": self.session, "form_token": token, "path": self.request.path}
