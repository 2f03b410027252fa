"""One campaign at one aggregator: its addresses, its requests, and what its refusals mean."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from ldp_client.errors import ClientError, ModelUnavailableError, ServerError, TransportError
from ldp_client.network.transport import Request, Response, Transport, check_url
from ldp_client.policy import RETRYABLE_STATUSES, Policy
from ldp_client.runtime.clock import Clock
from protocols import Campaign, DocumentError
from protocols.document.campaign import LARGEST_DOCUMENT
from protocols.document.verify import verify
from protocols.exact.coins import ONE, SYSTEM_COINS
from protocols.wire.upload import MEDIA_TYPE

_ACCEPT: Final = "application/json, application/problem+json"
_ID_CHARACTERS: Final = 43
_BASE64URL: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


class Server:
    """The aggregator as one campaign sees it. Making one touches no network."""

    def __init__(
        self,
        url: str,
        campaign_id: str,
        transport: Transport,
        clock: Clock,
        policy: Policy,
        token: str | None = None,
    ) -> None:
        base = check_url(url, allow_plain_http=policy.allow_plain_http)
        self._url = f"{base}/v1/campaigns/{campaign_id}"
        self._transport = transport
        self._clock = clock
        self._policy = policy
        self._headers = {"Accept": _ACCEPT}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"

    def transport(self) -> Transport:
        """How requests are made."""
        return self._transport

    def upload(self, body: bytes, attempt: int) -> Request:
        """The request that sends reports."""
        headers = {"Content-Type": MEDIA_TYPE, **self._headers}
        return Request("POST", self._url + "/reports", headers, body, attempt, self._policy.largest_answer)

    def campaign(self) -> bytes:
        """Fetch the campaign's document, not yet verified. Raises ServerError or TransportError."""
        return self._get(self._url, LARGEST_DOCUMENT, None).body

    def model(self, etag: str | None) -> Response:
        """Fetch the model; status 304 where it is still the one of ``etag``.

        Raises ModelUnavailableError, ServerError or TransportError.
        """
        try:
            return self._get(self._url + "/model", self._policy.largest_model, etag)
        except ServerError as error:
            if error.code == "no-model":
                raise ModelUnavailableError from None
            raise

    def _get(self, url: str, largest: int, etag: str | None) -> Response:
        headers = self._headers if etag is None else {**self._headers, "If-None-Match": etag}
        failure: ClientError = TransportError("unreachable")
        for attempt in range(1, self._policy.fetch_tries + 1):
            wait = self._policy.fetch_backoff_base * 2**attempt * SYSTEM_COINS.words(1)[0] / ONE
            try:
                request = Request("GET", url, headers, None, attempt, largest)
                answer = self.transport().send(request, self._policy.request_timeout)
            except TransportError as error:
                failure = error
            else:
                if answer.status == 200 or (answer.status == 304 and etag is not None):
                    return answer
                code = answer.problem_code() or f"http-{answer.status}"
                failure = ServerError(answer.status, code, f"the server refused with status {answer.status} ({code})")
                if answer.status not in RETRYABLE_STATUSES:
                    raise failure
                wait = max(wait, min(answer.retry_after(self._clock.time()), self._policy.fetch_longest_wait))
            if attempt < self._policy.fetch_tries:
                self._clock.sleep(wait)
        raise failure


def check_campaign_id(campaign_id: str) -> str:
    """The id, where it is one. Raises ValueError otherwise."""
    if len(campaign_id) != _ID_CHARACTERS or not _BASE64URL.issuperset(campaign_id):
        raise ValueError(f"campaign_id must be {_ID_CHARACTERS} characters of base64url")
    return campaign_id


@lru_cache(maxsize=16)
def read_campaign(document: bytes, campaign_id: str) -> Campaign:
    """The verified campaign; once in a process, since a backend makes a client for every user.

    Parsing recomputes the loss; the check of ``protocols.document.verify``, the one that an auditor runs, has formulas
    of its own and has to agree.
    """
    campaign = Campaign.parse(document, campaign_id)
    if not verify(campaign).holds:
        raise DocumentError("loss-above-epsilon", "a device would lose more than the campaign declares")
    return campaign
