"""One campaign at one aggregator: its addresses, its requests, what its refusals mean, and its document."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin

from ldp_client.errors import RefusedError, TransportError
from ldp_client.network.transport import Request, Response, Transport, check_apart, check_url
from ldp_client.policy import (
    FETCH_BACKOFF_BASE,
    FETCH_LONGEST_WAIT,
    FETCH_TRIES,
    LARGEST_ANSWER,
    LARGEST_MODEL,
    RETRYABLE_STATUSES,
    STATE_AGE,
    STATE_RETRY,
    STATE_WAIT,
    Policy,
)
from ldp_client.runtime import Clock, jitter, seconds_left
from ldp_protocols import Campaign, DocumentError, LdpError
from ldp_protocols.campaign import LARGEST_DOCUMENT, document_id
from ldp_protocols.verification import verify
from ldp_protocols.wire import MEDIA_TYPE

if TYPE_CHECKING:
    from ldp_client.storage.contract import Cache, Transaction

Headers = Callable[[bytes], Mapping[str, str]]
"""More headers for the upload of these bytes, asked for anew at every attempt: a token, an attestation."""

_ACCEPT: Final = {"Accept": "application/json, application/problem+json"}
_JSON: Final = "application/json"
_UNLIMITED: Final = float("inf")
LARGEST_STATE: Final = 1024
STATES: Final = {
    "not-yet": "campaign-not-open",
    "closing": "campaign-closing",
    "closed": "campaign-closed",
    "full": "campaign-full",
    "deleted": "campaign-deleted",
}
"""Why a device answers no campaign that stands so; any other word, of a later aggregator, stops nobody."""
_ID_CHARACTERS: Final = 43
_BASE64URL: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
_LOGIN_NEEDED: Final = 511
"""RFC 6585: the network wants a login, the aggregator has not been reached."""


class Aggregator:
    """The aggregator as one campaign sees it. Making one touches no network; raises LdpError for an unsafe address.

    ``headers`` are for uploads only: a fetch needs no permission, and a token beside it would tell who fetches.
    Requests of another ``isolate`` (None takes the campaign's id) never share a connection with these. Where there is
    a ``relay``, whatever is public is fetched from it, beside its own address, and never from the aggregator, which
    would see who asks, and could hand it to one of them alone.
    """

    def __init__(
        self,
        url: str,
        campaign_id: str,
        transport: Transport,
        clock: Clock,
        policy: Policy,
        *,
        headers: Headers | None = None,
        isolate: str | None = None,
        relay: str | None = None,
    ) -> None:
        self.base = url.rstrip("/")
        base = check_url(url, allow_plain_http=policy.allow_plain_http)
        if relay is not None:
            check_apart(relay, base)
        self.campaign_id = check_campaign_id(campaign_id)
        self._reports = f"{base}/v1/campaigns/{campaign_id}/reports"
        self._public = f"{base}/v1" if relay is None else urljoin(relay, "v1")
        self.transport = transport
        self._clock = clock
        self._policy = policy
        self._headers = headers
        self._isolate = campaign_id if isolate is None else isolate

    @property
    def signer(self) -> str:
        """The publisher whose signature is asked for; nobody's here: the app believes the aggregator."""
        return ""

    def refresh(self) -> None:
        """Fetch what the publisher says of the campaign now. Raises DocumentError, TransportError or StorageError."""

    def refusal(self, transaction: Transaction) -> RefusedError | None:
        """The reason why the publisher says no. Raises StorageError where what was signed cannot be read."""
        return None

    def upload(self, body: bytes, attempt: int, token: bytes | None = None) -> Request:
        """The request that sends reports with their token; behind it may stand the one for relays. Raises
        TransportError without the app's headers.
        """
        headers = {"Content-Type": MEDIA_TYPE, **_ACCEPT}
        if token is not None:
            # Here: few campaigns have an issuer.
            from ldp_protocols.tokens import TOKEN_BYTES, credentials

            headers["Authorization"] = credentials(token[:TOKEN_BYTES])
        if self._headers is not None:
            try:
                own = {name.lower() for name in headers}
                more = self._headers(body)
                headers |= {name: value for name, value in more.items() if name.lower() not in own}
            except Exception:
                # The app's own code: whatever it is, the report is fine and is tried again.
                raise TransportError("no-headers") from None
        return Request("POST", self._reports, headers, body, attempt, LARGEST_ANSWER, self._isolate)

    def opened(self, answer: Response) -> Response:
        """The aggregator's answer to :meth:`upload`, unsealed. Raises TransportError for anybody else's."""
        return answer

    def campaign(self) -> bytes:
        """Fetch the campaign's document, not yet verified, within what the call has left. Raises TransportError."""

        def is_document(answer: Response) -> bool:
            # A plain file server does not know the type of what it serves; the hash tells.
            return _is_json(answer) or document_id(answer.body) == self.campaign_id

        return self._get(self._of_campaign, LARGEST_DOCUMENT, is_document).body

    @property
    def _of_campaign(self) -> str:
        return f"{self._public}/campaigns/{self.campaign_id}"

    def model(self) -> bytes:
        """Fetch the model, within what the call has left.

        Safety: nothing says which model is known here. The server chooses a model's bytes, one for each visitor where
        it likes, so that a tag or a hash of them that comes back would be a name for this device.

        Raises TransportError; where there is none yet, ``no-model``.
        """
        return self._get(self._of_campaign + "/model", LARGEST_MODEL, _is_json).body

    def state(self) -> bytes:
        """Fetch how the campaign stands, the same for everybody, in one try. Raises TransportError."""
        left, most = min(STATE_WAIT, seconds_left(_UNLIMITED)), LARGEST_STATE
        request = Request("GET", self._of_campaign + "/state", _ACCEPT, None, 1, most, self._isolate)
        answer = self.transport.send(request, left)
        if len(answer.body) > most or not _is_answer(answer, _is_json):
            raise TransportError(answer.problem_code() or f"http-{answer.status}", "no state", answer.status)
        return answer.body

    def directory(self, key: str) -> bytes:
        """Fetch what the holder of a public key has signed, not yet verified. Raises TransportError."""
        # Here: an app that pins no key does without what reads signatures.
        from ldp_protocols.document.directory import LARGEST_DIRECTORY

        return self._get(f"{self._public}/directories/{key}", LARGEST_DIRECTORY, _is_json).body

    def _get(self, url: str, largest: int, is_expected: Callable[[Response], bool]) -> Response:
        failure = TransportError("timeout")
        for attempt in range(1, FETCH_TRIES + 1):
            left = min(self._policy.request_timeout, seconds_left(_UNLIMITED))
            if left <= 0:
                break
            wait = FETCH_BACKOFF_BASE * 2**attempt * jitter()
            request = Request("GET", url, _ACCEPT, None, attempt, largest, self._isolate)
            try:
                answer = self.transport.send(request, left)
                if len(answer.body) > largest:
                    # Before anything reads it: a transport of the app's own may not have looked.
                    raise TransportError("answer-too-long")
                if _is_answer(answer, is_expected):
                    return answer
            except TransportError as error:
                failure = error
            else:
                code = answer.problem_code() or f"http-{answer.status}"
                reason = None if code == "no-model" else f"the server refused with status {answer.status} ({code})"
                failure = TransportError(code, reason, answer.status)
                if answer.status not in RETRYABLE_STATUSES:
                    raise failure
                wait = max(wait, min(answer.retry_after(self._clock.time()), FETCH_LONGEST_WAIT))
            if attempt == FETCH_TRIES or wait >= seconds_left(_UNLIMITED):
                break
            self._clock.sleep(wait)
        raise failure


def _is_json(answer: Response) -> bool:
    return answer.media_type == _JSON


def _is_answer(answer: Response, is_expected: Callable[[Response], bool]) -> bool:
    """True for a fetched document, False for a refusal. Raises TransportError for no aggregator's, as a login page."""
    foreign = answer.status == _LOGIN_NEEDED or 300 <= answer.status < 400
    if foreign or (answer.status == 200 and not is_expected(answer)):
        raise TransportError("not-the-aggregator")
    return answer.status == 200


def check_campaign_id(campaign_id: str) -> str:
    """The id, where it is one. Raises LdpError otherwise."""
    if len(campaign_id) != _ID_CHARACTERS or not _BASE64URL.issuperset(campaign_id):
        raise LdpError("bad-campaign-id", f"campaign_id must be {_ID_CHARACTERS} characters of base64url")
    return campaign_id


@lru_cache(maxsize=16)
def read_campaign(document: bytes, campaign_id: str) -> Campaign:
    """The verified campaign; once in a process, since a backend makes a client for every user.

    Parsing recomputes the loss; the check of ``ldp_protocols.verification``, the one that an auditor runs, has
    formulas of its own and has to agree.
    """
    campaign = Campaign.parse(document, campaign_id)
    if campaign.federation is not None:
        raise DocumentError("invalid-document", "federation: the campaign asks organisations, and no device")
    if not verify(campaign).holds:
        raise DocumentError("loss-above-epsilon", "a device would lose more than the campaign declares")
    return campaign


class Standing:
    """The standing of one campaign, as its aggregator said on this day (UTC). Where that cannot be heard, or is not
    understood, the campaign counts as open; it is asked again :data:`STATE_RETRY` seconds later.
    """

    def __init__(self, aggregator: Aggregator, cache: Cache, clock: Clock) -> None:
        self._aggregator, self._cache, self._clock = aggregator, cache, clock
        self._key = f"state/{aggregator.campaign_id}"
        self._code: str | None = None
        self._heard = self._tried = -_UNLIMITED
        self._said = b""

    def keep(self) -> None:
        """Have what was heard beside the document, if that can be done."""
        if self._said:
            self._cache.put(self._key, b"%d %b" % (self._heard, self._said))

    def hear(self, *, keep: bool) -> None:
        """Ask, where that was not done on this day; ``keep`` what is heard beside the document. Raises nothing."""
        now = self._clock.time()
        if not self._is_fresh(now) and (cached := self._cache.get(self._key)) is not None:
            heard, _, said = cached.partition(b" ")
            self._take(said, heard)
        if not self._is_fresh(now) and not 0 <= now - self._tried < STATE_RETRY:
            self._tried = now
            with contextlib.suppress(Exception):  # Also what an app's own transport raises: nobody is kept by this.
                self._take(self._aggregator.state(), b"%d" % now)
                if keep:
                    self.keep()

    def refusal(self) -> RefusedError | None:
        """The reason why the aggregator takes no new answer, as far as that was heard on this day."""
        code = self._code if self._is_fresh(self._clock.time()) else None
        return None if code is None else RefusedError(code)

    def _is_fresh(self, now: float) -> bool:
        return self._heard // STATE_AGE == now // STATE_AGE

    def _take(self, body: bytes, heard: bytes) -> None:
        import json  # here: an app's start need not load it

        with contextlib.suppress(ValueError, TypeError, LookupError, RecursionError):
            self._code, self._heard, self._said = STATES.get(json.loads(body)["state"]), float(heard), body


class Document:
    """One campaign's, in memory, in the cache, or at the aggregator."""

    def __init__(self, aggregator: Aggregator, cache: Cache) -> None:
        self._aggregator = aggregator
        self._cache = cache
        self._key = f"campaign/{aggregator.campaign_id}"
        self._campaign: Campaign | None = None

    def load(self, document: bytes) -> Campaign:
        """The campaign of these bytes, from now on. Raises DocumentError."""
        self._campaign = read_campaign(document, self._aggregator.campaign_id)
        return self._campaign

    def at_hand(self) -> Campaign | None:
        """The campaign from memory or the cache."""
        if self._campaign is None and (stored := self._cache.get(self._key)) is not None:
            # A stored document that was damaged is fetched again.
            with contextlib.suppress(DocumentError):
                self.load(stored)
        return self._campaign

    def needed(self) -> Campaign:
        """The same. Raises RefusedError (``not-fetched``) where there is none."""
        campaign = self.at_hand()
        if campaign is None:
            raise RefusedError("not-fetched")
        return campaign

    def fetched(self) -> Campaign:
        """The campaign at hand, or from the aggregator. Raises DocumentError or TransportError."""
        return self.at_hand() or self.load(self._aggregator.campaign())

    def keep(self, campaign: Campaign) -> None:
        """Have it in the cache, if that can be done."""
        self._cache.put(self._key, campaign.document)
