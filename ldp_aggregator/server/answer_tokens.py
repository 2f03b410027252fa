"""Answer tokens at the door: an upload to a campaign with an issuer shows one, of just this answer."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, RSAPublicNumbers
from cryptography.hazmat.primitives.hashes import SHA384

from ldp_aggregator.server.problems import ProblemError
from ldp_protocols import Campaign
from ldp_protocols.document.issuer import EXPONENT
from ldp_protocols.framing import ID_BYTES
from ldp_protocols.tokens import SALT_BYTES, SCHEME, challenge, issuer_of, read_credentials, token_input
from ldp_protocols.wire import Block

_HASH: Final = SHA384()
_PADDING: Final = PSS(MGF1(_HASH), SALT_BYTES)


def check_answer_token(campaign: Campaign, blocks: Sequence[Block], shown: str | None) -> None:
    """Check that a header ``Authorization`` shows the token of these reports, and that they are one device's answer.

    Who counts them once has spent it: the token is of their ids. Raises ProblemError.
    """
    token = None if shown is None else read_credentials(shown)
    if token is None:
        raise ProblemError("missing-answer-token", headers=_asked_for(campaign))
    if not _are_one_answer(campaign, blocks):
        raise ProblemError(
            "too-many-reports", "a token is of one answer: one report, or one to each group of questions"
        )
    ids = [block.ids[start : start + ID_BYTES] for block in blocks for start in range(0, len(block.ids), ID_BYTES)]
    signed = token_input(campaign, ids)
    if not token.startswith(signed):
        told = "it is of other reports, of another campaign or of another key"
        raise ProblemError("wrong-answer-token", told, headers=_asked_for(campaign))
    try:
        _key(issuer_of(campaign).modulus).verify(token[len(signed) :], signed, _PADDING, _HASH)
    except InvalidSignature:
        raise ProblemError("wrong-answer-token", "the issuer did not sign it", headers=_asked_for(campaign)) from None


def _are_one_answer(campaign: Campaign, blocks: Sequence[Block]) -> bool:
    """Return whether there is at most one report to the questions of which a device answers one."""
    if campaign.privacy.answers == "one":
        return [block.count for block in blocks] == [1]
    asked = [campaign.counted[block.question].group for block in blocks]
    return len(set(asked)) == len(asked) and all(block.count == 1 for block in blocks)


@lru_cache(maxsize=64)
def _key(modulus: int) -> RSAPublicKey:
    return RSAPublicNumbers(EXPONENT, modulus).public_key()


def _asked_for(campaign: Campaign) -> dict[str, str]:
    """The challenge of RFC 9577, 2.1, which says what would be right."""
    asked = {"challenge": challenge(campaign), "token-key": issuer_of(campaign).key}
    told = ", ".join(f'{name}="{urlsafe_b64encode(value).decode()}"' for name, value in asked.items())
    return {"WWW-Authenticate": f"{SCHEME} {told}"}
