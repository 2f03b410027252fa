"""The gateway of Oblivious HTTP (RFC 9458): opens requests that devices sealed to its keys, and seals the answers.

HPKE (RFC 9180) is ``pyhpke``'s, of the extra ``ohttp``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ldp_aggregator.server.problems import ProblemError
from ldp_aggregator.service.settings import Settings, setting_error
from ldp_aggregator.service.signing import gateway_of, read_gateway_seeds
from ldp_protocols.document.gateway import X25519_HKDF_SHA256, Gateway
from ldp_protocols.oblivious import (
    ENC_BYTES,
    HEADER_BYTES,
    LEAST_SEALED,
    answer_key,
    nonce_bytes,
    seal_header,
    seal_info,
    suite,
)

if TYPE_CHECKING:
    from pyhpke import ContextInterface


class Opened:
    """A request that was opened: its binary HTTP ``message``, and what seals the one answer to it."""

    __slots__ = ("_aead", "_context", "_enc", "message")

    def __init__(self, message: bytes, aead: int, context: ContextInterface, enc: bytes) -> None:
        self.message, self._aead, self._context, self._enc = message, aead, context, enc

    def seal(self, answer: bytes) -> bytes:
        """RFC 9458, section 4.4."""
        nonce = os.urandom(nonce_bytes(self._aead))
        key, of_key = answer_key(self._aead, self._context, self._enc, nonce)
        return nonce + key.seal(answer, of_key)


class GatewayKeys:
    """The keys by their identifiers, none where the server is no gateway."""

    def __init__(self, seeds: tuple[bytes, ...] = ()) -> None:
        self._known: Mapping[int, tuple[Gateway, Any]] = {
            gateway.key_id: (gateway, suite(gateway.aeads[0]).kem.deserialize_private_key(seed))
            for seed in seeds
            for gateway in (gateway_of(seed),)
        }

    @classmethod
    def of(cls, settings: Settings) -> GatewayKeys:
        """Raises LdpError where the setting's file holds no keys, or the library is missing."""
        if settings.gateway_key is None:
            return cls()
        if find_spec("pyhpke") is None:
            raise setting_error("setting gateway_key: needs the library pyhpke; pip install 'ldp-bayes[ohttp]' has it")
        return cls(read_gateway_seeds(settings.gateway_key))

    def check_open(self) -> None:
        """Raises ProblemError where nothing that is sealed can be opened."""
        if not self._known:
            raise ProblemError("unknown-gateway-key", "this server is no gateway")

    def open(self, sealed: bytes) -> Opened:
        """RFC 9458, section 4.3. Raises ProblemError, of which the answer is not sealed: section 5.2."""
        header, enc = sealed[:HEADER_BYTES], sealed[HEADER_BYTES : HEADER_BYTES + ENC_BYTES]
        if len(sealed) < LEAST_SEALED:
            raise ProblemError("malformed-sealed", f"a sealed request has at least {LEAST_SEALED} bytes")
        known = self._known.get(header[0])
        if known is None or int.from_bytes(header[1:3], "big") != X25519_HKDF_SHA256:
            raise ProblemError("unknown-gateway-key")
        gateway, key = known
        aead = int.from_bytes(header[5:], "big")
        if aead not in gateway.aeads or header != seal_header(gateway.key_id, aead):
            raise ProblemError("unknown-gateway-key", "the key is not used with these algorithms")
        try:
            context = suite(aead).create_recipient_context(enc, key, seal_info(header))
            return Opened(context.open(sealed[HEADER_BYTES + ENC_BYTES :]), aead, context, enc)
        except Exception:  # The library raises several kinds; each means that it was not sealed to this key.
            raise ProblemError("malformed-sealed") from None
