"""The gateway of Oblivious HTTP (RFC 9458): opens requests that devices sealed to its keys, and seals the answers.

HPKE (RFC 9180) is ``pyhpke``'s, of the extra ``ohttp``.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from ldp_aggregator.server.problems import ProblemError
from ldp_aggregator.service.drafts import check_gateway
from ldp_aggregator.service.settings import Settings, setting_error
from ldp_aggregator.service.signing import gateway_of, read_gateway_seeds
from ldp_protocols import Campaign, DocumentError
from ldp_protocols.document.gateway import X25519_HKDF_SHA256, Gateway
from ldp_protocols.oblivious import (
    ENC_BYTES,
    HEADER_BYTES,
    LEAST_SEALED,
    BinaryRequest,
    answer_key,
    decode_request,
    nonce_bytes,
    seal_header,
    seal_info,
    suite,
)

if TYPE_CHECKING:
    from pyhpke import ContextInterface


MOST_AT_ONCE: Final = 64
"""Requests that are opened in one go: some milliseconds, for which others wait."""


class Opened:
    """A sealed request, or what is wrong with the message that was sealed; and what seals the one answer to it."""

    __slots__ = ("_aead", "_context", "_enc", "request")

    def __init__(
        self, request: BinaryRequest | DocumentError, aead: int, context: ContextInterface, enc: bytes
    ) -> None:
        self.request, self._aead, self._context, self._enc = request, aead, context, enc

    def seal(self, answer: bytes) -> bytes:
        """RFC 9458, section 4.4."""
        nonce = os.urandom(nonce_bytes(self._aead))
        key, of_key = answer_key(self._aead, self._context, self._enc, nonce)
        return nonce + key.seal(answer, of_key)


class GatewayKeys:
    """The keys by their identifiers, none where the server is no gateway.

    What strangers have sealed is opened and read beside the event loop, in one thread, which takes those that wait
    together: to hand one over costs as much as a part of the work.
    """

    def __init__(self, seeds: Sequence[bytes] = (), *, elsewhere: bool = False) -> None:
        self._known: Mapping[int, tuple[Gateway, Any]] = _private(seeds)
        self._elsewhere = elsewhere
        self._thread = ThreadPoolExecutor(1, "gateway")
        self._waiting: deque[tuple[bytes, asyncio.Future[Opened]]] = deque()
        self._opening: asyncio.Task[None] | None = None

    @classmethod
    def of(cls, settings: Settings) -> GatewayKeys:
        """Raises LdpError where the setting's file holds no keys, or the library is missing."""
        if settings.gateway_key is not None and find_spec("pyhpke") is None:
            raise setting_error("setting gateway_key: needs the library pyhpke; pip install 'ldp-bayes[ohttp]' has it")
        keys = cls(elsewhere=settings.gateway_elsewhere)
        keys.read_again(settings)
        return keys

    def read_again(self, settings: Settings) -> None:
        """Open from now on what is sealed to the file's keys alone. Raises LdpError, and changes nothing."""
        if settings.gateway_key is not None:
            self._known = _private(read_gateway_seeds(settings.gateway_key))

    def lacks(self, gateway: Gateway) -> bool:
        """Nobody can open what is sealed to this key: it is not here, and nothing says that another server has it."""
        known = self._known.get(gateway.key_id)
        return not self._elsewhere and (known is None or known[0].public_key != gateway.public_key)

    def check_receivable(self, campaign: Campaign) -> None:
        """Refuse to publish what nobody could open the answers to. Raises DraftError."""
        if campaign.gateway is not None and self.lacks(campaign.gateway):
            check_gateway(campaign, [gateway for gateway, _ in self._known.values()])

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
            message = context.open(sealed[HEADER_BYTES + ENC_BYTES :])
        except Exception:  # The library raises several kinds; each means that it was not sealed to this key.
            raise ProblemError("malformed-sealed") from None
        try:
            return Opened(decode_request(message), aead, context, enc)
        except DocumentError as error:
            return Opened(error, aead, context, enc)

    async def open_in_turn(self, sealed: bytes) -> Opened:
        """The same, in the thread."""
        opened: asyncio.Future[Opened] = asyncio.get_running_loop().create_future()
        self._waiting.append((sealed, opened))
        if self._opening is None:
            self._opening = asyncio.create_task(self._open_waiting())
        return await opened

    async def open_all(self, sealed: Sequence[bytes]) -> list[Opened | ProblemError]:
        """The same of many. Who waits for a single one waits for a part of them."""
        opened: list[Opened | ProblemError] = []
        for start in range(0, len(sealed), MOST_AT_ONCE):
            opened += await self._open_some(sealed[start : start + MOST_AT_ONCE])
        return opened

    async def _open_waiting(self) -> None:
        while self._waiting:
            group = [self._waiting.popleft() for _ in range(min(MOST_AT_ONCE, len(self._waiting)))]
            for (_, waiting), end in zip(group, await self._open_some([one for one, _ in group]), strict=True):
                if waiting.done():
                    continue  # Whoever waited has gone.
                if isinstance(end, ProblemError):
                    waiting.set_exception(end)
                else:
                    waiting.set_result(end)
        self._opening = None

    async def _open_some(self, sealed: Sequence[bytes]) -> list[Opened | ProblemError]:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._opened, sealed)

    def _opened(self, sealed: Sequence[bytes]) -> list[Opened | ProblemError]:
        ends: list[Opened | ProblemError] = []
        for one in sealed:
            try:
                ends.append(self.open(one))
            except ProblemError as problem:
                ends.append(problem)
        return ends


def _private(seeds: Sequence[bytes]) -> dict[int, tuple[Gateway, Any]]:
    return {
        gateway.key_id: (gateway, suite(gateway.aeads[0]).kem.deserialize_private_key(seed))
        for seed in seeds
        for gateway in (gateway_of(seed),)
    }
