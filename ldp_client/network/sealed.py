"""Uploads that are sealed to the gateway of their campaign and go through a relay (Oblivious HTTP, RFC 9458): the relay
sees who sends and nothing of what, the aggregator what is sent and nothing of who.

Loaded where a campaign has a gateway. Every try seals anew (RFC 9458, section 6.1), so that two tries of one upload
have nothing in common that a relay could see, but their length.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from ldp_client.errors import TransportError
from ldp_client.network.aggregator import Aggregator
from ldp_client.network.transport import Request, Response
from ldp_client.policy import LARGEST_ANSWER, RETRYABLE_STATUSES
from ldp_protocols.document.gateway import Gateway, read_keys
from ldp_protocols.errors import DocumentError, LdpError
from ldp_protocols.oblivious import (
    BESIDE_BODY,
    REQUEST_TYPE,
    RESPONSE_TYPE,
    BinaryRequest,
    answer_key,
    decode_response,
    encode_request,
    nonce_bytes,
    seal_header,
    seal_info,
    suite,
)

SEALING_BYTES: Final = 4096
"""The most that sealing adds to an answer: nonce, tag, headers, padding."""

_TAKEN: Final = b'{"rejected": []}'
"""An aggregator's answer to an upload of which it refuses nothing."""


class Sealed:
    """One request, sealed: its ``body``, and what opens the answer to it, once it comes."""

    def __init__(self, gateway: Gateway, message: bytes) -> None:
        self._aead = gateway.aeads[0]
        header = seal_header(gateway.key_id, self._aead)
        of = suite(self._aead)
        key = of.kem.deserialize_public_key(gateway.public_key)
        self._enc, self._context = of.create_sender_context(key, seal_info(header))
        self.body = header + self._enc + self._context.seal(message)

    def open(self, body: bytes) -> bytes:
        """The message of an answer. Raises TransportError for one that the gateway did not seal to this request."""
        length = nonce_bytes(self._aead)
        key, nonce = answer_key(self._aead, self._context, self._enc, body[:length])
        try:
            return key.open(body[length:], nonce)
        except Exception:
            raise TransportError("not-the-gateway") from None


class SealedAggregator(Aggregator):
    """An aggregator for one sealed upload by ``relay`` to the document's ``gateway``, of several keys to that of now.
    Raises as :class:`Aggregator`.
    """

    def __init__(self, relay: str, gateway: str, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, relay=relay, **options)
        self._relay = relay
        read = read_keys(gateway)
        if isinstance(read, str):
            raise LdpError("bad-gateway", f"the gateway's key {read}")
        self._gateway = read.at(self._clock.time())
        self._sealed: Sealed | None = None

    def upload(self, body: bytes, attempt: int, token: bytes | None = None) -> Request:
        """See :meth:`Aggregator.upload`: that request, sealed. Token and headers are inside, and nothing is outside but
        the relay's own token.
        """
        inner = super().upload(body, attempt, token)
        url = urlsplit(inner.url)
        headers = tuple((name.lower(), value) for name, value in inner.headers.items())
        try:
            inside = BinaryRequest("POST", "https", url.netloc, url.path, headers, body)
            message = encode_request(inside, beside=BESIDE_BODY)
        except (DocumentError, TypeError, ValueError):
            raise TransportError("bad-request") from None
        self._sealed = Sealed(self._gateway, message)
        largest = LARGEST_ANSWER + SEALING_BYTES
        outside = {"Content-Type": REQUEST_TYPE}
        if token is not None:
            # Here: few campaigns have an issuer.
            from ldp_protocols.tokens import RELAY_HEADER, TOKEN_BYTES, credentials

            if len(token) > TOKEN_BYTES:
                outside[RELAY_HEADER] = credentials(token[TOKEN_BYTES:])
        return Request("POST", self._relay, outside, self._sealed.body, attempt, largest, inner.isolate)

    def opened(self, answer: Response) -> Response:
        """See :meth:`Aggregator.opened`. A relay that mixes answers 202 once it has the upload on disk.

        Safety: whatever else was not sealed was said by the relay, or by somebody on the way: nothing is dropped, set
        apart or taken for counted by it, and the upload is tried again.
        """
        if answer.status == 202 and not answer.body:
            return Response(200, {}, _TAKEN)
        if answer.status == 200 and answer.media_type == RESPONSE_TYPE and self._sealed is not None:
            try:
                status, headers, body = decode_response(self._sealed.open(answer.body))
            except DocumentError:
                raise TransportError("not-the-gateway") from None
            return Response(status, dict(headers), body)
        if answer.status in RETRYABLE_STATUSES:
            return answer
        code = answer.problem_code() or ("not-the-gateway" if answer.status == 200 else f"http-{answer.status}")
        raise TransportError(code, f"the relay answers {answer.status} ({code})", answer.status)
