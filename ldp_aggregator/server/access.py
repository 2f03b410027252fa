"""Access to the server: the token that a request shows and its scope, the campaigns whose uploads need one, and the
answer tokens of campaigns with an issuer, each of just one answer.
"""

from __future__ import annotations

import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, RSAPublicNumbers
from cryptography.hazmat.primitives.hashes import SHA384

from ldp_aggregator.server.problems import ProblemError
from ldp_aggregator.service.rights import find_token
from ldp_aggregator.store import Store
from ldp_aggregator.store.contract import (
    StoredToken,
    utc_now,
)
from ldp_protocols import Campaign
from ldp_protocols.document.issuer import EXPONENT
from ldp_protocols.framing import ID_BYTES
from ldp_protocols.tokens import SALT_BYTES, SCHEME, challenge, issuer_of, read_credentials, token_input
from ldp_protocols.wire import Block

KEPT_SECONDS: Final = 2.0
"""Seconds for which a change of who may upload, made elsewhere, may go unnoticed here."""
MOST_KEPT: Final = 1024
"""Campaigns whose scopes are cached at most."""

CHALLENGE: Final = {"WWW-Authenticate": "Bearer"}
"""The scheme that a 401 says would be right."""

_HASH: Final = SHA384()
_PADDING: Final = PSS(MGF1(_HASH), SALT_BYTES)


class UploadAccess:
    """The campaigns that take uploads with a token only: kept for a moment, because every upload asks.

    ``everywhere`` is the scope that this server asks of uploads to campaigns that ask for none.
    """

    def __init__(self, store: Store, everywhere: str | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._everywhere, self._clock = store, everywhere, clock
        self._cached: dict[str, tuple[float, str | None]] = {}

    async def uploads_need(self, campaign_id: str) -> str | None:
        """The scope that uploads to a campaign need, None if anybody may upload. Raises StoreError."""
        now = self._clock()
        until, scope = self._cached.get(campaign_id, (now, None))
        if now < until:
            return scope
        if campaign_id in self._cached:
            self._cached[campaign_id] = (now + KEPT_SECONDS, scope)  # One reads it again; the others need not wait.
        try:
            scope = (await self._store.terms(campaign_id)).uploads_need or self._everywhere
        except BaseException:
            self.forget(campaign_id)
            raise
        if len(self._cached) >= MOST_KEPT:
            self._cached.clear()
        self._cached[campaign_id] = (now + KEPT_SECONDS, scope)
        return scope

    def is_known_open(self, campaign_id: str) -> bool:
        """Anybody may upload, as far as was read lately; who does not know asks :meth:`uploads_need`."""
        until, scope = self._cached.get(campaign_id, (0.0, None))
        return scope is None and self._clock() < until

    def forget(self, campaign_id: str) -> None:
        """Forget a cached scope, which was changed in this process."""
        self._cached.pop(campaign_id, None)


async def authorised(
    headers: Mapping[str, str], store: Store, *scopes: str, campaign_id: str | None = None
) -> StoredToken:
    """The token that a request shows, if it has one of these scopes, for what is about this campaign (None: about no
    single one). Raises ProblemError.
    """
    token = await shown_token(headers, store, *scopes)
    if not token.is_for(campaign_id):
        raise ProblemError("wrong-campaign")
    return token


async def shown_token(headers: Mapping[str, str], store: Store, *scopes: str) -> StoredToken:
    """The token that a request shows, for any campaign. It is read anew: a revoked one ends at once. Raises
    ProblemError.
    """
    scheme, _, text = headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not text.strip():
        raise ProblemError("missing-token", headers=CHALLENGE)
    token = await find_token(text.strip(), store, utc_now())
    if token is None:
        raise ProblemError("wrong-token", headers=CHALLENGE)
    if token.scope not in scopes:
        raise ProblemError("wrong-scope", f"this takes the scope {' or '.join(scopes)}; the token has {token.scope}")
    return token


def check_answer_token(campaign: Campaign, blocks: Sequence[Block], authorization: str | None) -> None:
    """Check that a header ``Authorization`` shows the token of these reports, and that they are one device's answer.

    Who counts them once has spent it: the token is of their ids. Raises ProblemError.
    """
    token = None if authorization is None else read_credentials(authorization)
    if token is None:
        raise ProblemError("missing-answer-token", headers=_challenge(campaign))
    if not _are_one_answer(campaign, blocks):
        raise ProblemError(
            "too-many-reports", "a token is of one answer: one report, or one to each group of questions"
        )
    ids = [block.ids[start : start + ID_BYTES] for block in blocks for start in range(0, len(block.ids), ID_BYTES)]
    signed = token_input(campaign, ids)
    if not token.startswith(signed):
        text = "it is of other reports, of another campaign or of another key"
        raise ProblemError("wrong-answer-token", text, headers=_challenge(campaign))
    try:
        _key(issuer_of(campaign).modulus).verify(token[len(signed) :], signed, _PADDING, _HASH)
    except InvalidSignature:
        raise ProblemError("wrong-answer-token", "the issuer did not sign it", headers=_challenge(campaign)) from None


def _are_one_answer(campaign: Campaign, blocks: Sequence[Block]) -> bool:
    """True if there is at most one report to the questions of which a device answers one."""
    if campaign.privacy.answers == "one":
        return [block.count for block in blocks] == [1]
    groups = [campaign.counted[block.question].group for block in blocks]
    return len(set(groups)) == len(groups) and all(block.count == 1 for block in blocks)


@lru_cache(maxsize=64)
def _key(modulus: int) -> RSAPublicKey:
    return RSAPublicNumbers(EXPONENT, modulus).public_key()


def _challenge(campaign: Campaign) -> dict[str, str]:
    """The challenge of RFC 9577, 2.1, which says what would be right."""
    parameters = {"challenge": challenge(campaign), "token-key": issuer_of(campaign).key}
    text = ", ".join(f'{name}="{urlsafe_b64encode(value).decode()}"' for name, value in parameters.items())
    return {"WWW-Authenticate": f"{SCHEME} {text}"}
