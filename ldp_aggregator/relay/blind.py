"""Whole uploads on their way through a relay: sealed ones (RFC 9458, section 6.2), kept, mixed and forwarded, and never
read; and in the clear answers with the token that each shows.

A whole upload waits as a report does, under an id that is a hash of it: what somebody has seen and sends again is the
same upload, and the order of a batch, which is that of the ids, looks like one drawn by lot.

All sealed ones of a campaign have one length, which the document tells; another was sent to fill the relay, or by an
app whose length it was not told.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgpack

from ldp_aggregator.relay.mixing import EXPIRED, GATHERING
from ldp_client.errors import StorageError, TransportError
from ldp_client.network.aggregator import Aggregator
from ldp_client.network.transport import Request, Response
from ldp_client.policy import LARGEST_ANSWER, RETRYABLE_STATUSES, SPLIT_STATUSES
from ldp_client.runtime import ForkSafeLock
from ldp_client.storage.contract import Transaction
from ldp_protocols import Campaign, DocumentError, LdpError, Report
from ldp_protocols.document.gateway import Gateway
from ldp_protocols.framing import ID_BYTES
from ldp_protocols.oblivious import BATCH_TYPE, HEADER_BYTES, LEAST_SEALED, LENGTH_HEADER, seal_header, sealed_bytes
from ldp_protocols.tokens import ANSWERS_TYPE

_SEALED: Final = "sealed."
_SHOWN: Final = "shown."
WINDOW: Final = "window."
_ANSWER: Final = b'{"rejected": []}'
"""The answer to an upload of which everything was settled."""

Vouch = Callable[[Collection[bytes]], Mapping[str, str]]
"""Ids of a queue to the headers of a request that forwards them."""


def sealed_name(length: int) -> str:
    """The name of the queue of sealed uploads of a length."""
    return f"{_SEALED}{length}"


def shown_name(window: int) -> str:
    """The name of the queue of answers with their tokens, of a window."""
    return f"{_SHOWN}{window}"


def is_sealed(name: str) -> bool:
    """True for the name of a queue of sealed uploads; no campaign's id has a dot."""
    return name.startswith(_SEALED)


def is_whole(name: str) -> bool:
    """True for the name of a queue of whole uploads."""
    return name.startswith((_SEALED, _SHOWN))


def queue_names(transaction: Transaction) -> list[str]:
    """The names of the queues in which whole uploads, or a series' reports, wait or are on their way."""
    kinds = [(prefix, kind) for prefix in (GATHERING, EXPIRED, "delivery/") for kind in (_SEALED, _SHOWN, WINDOW)]
    return sorted({key.removeprefix(prefix) for prefix, kind in kinds for key, _ in transaction.items(prefix + kind)})


def lengths_of(campaign: Campaign, named: Collection[int] = ()) -> frozenset[int]:
    """The lengths of the campaign's sealed uploads: every device's, and those that were ``named`` beside it."""
    return frozenset({sealed_bytes(campaign.upload_bytes), *named})


def sealed_report(sealed: bytes, gateway: Gateway | None, lengths: Collection[int]) -> Report:
    """A sealed upload as it is queued. Raises DocumentError for what the gateway cannot open by its head alone, or has
    a length that no device's has.
    """
    if gateway is None:
        raise DocumentError("no-gateway", "the campaign has no gateway; send its uploads unsealed")
    heads = [seal_header(key.key_id, aead) for key in gateway.keys for aead in key.aeads]
    if len(sealed) < LEAST_SEALED or sealed[:HEADER_BYTES] not in heads:
        raise DocumentError("malformed-sealed", "this is not sealed to the campaign's gateway")
    if len(sealed) not in lengths:
        right = " or ".join(map(str, sorted(lengths)))
        raise DocumentError("wrong-length", f"this has {len(sealed)} bytes; the campaign's sealed uploads have {right}")
    return whole_report(sealed)


def whole_report(upload: bytes) -> Report:
    """A whole upload as it is queued."""
    return Report(0, hashlib.sha256(upload).digest()[:ID_BYTES], upload)


@dataclass
class Arrival:
    """An upload whose sender waits until it is stored in the queue ``name``, or refused. ``admitted`` is the key of its
    token, if it needs one.
    """

    report: Report
    name: str
    admitted: str | None = None
    is_settled: bool = False
    refused: LdpError | None = None


class Arrivals:
    """Arrivals of many threads, stored in one transaction, which costs nearly the same whatever is in it: the thread
    that has the turn stores those that have come meanwhile.
    """

    def __init__(self, keep: Callable[[Sequence[Arrival]], None]) -> None:
        self._keep = keep
        self._waiting: deque[Arrival] = deque()
        self._turn = ForkSafeLock()

    def keep(self, arrival: Arrival, timeout: float) -> None:
        """Wait until it is settled. Raises StorageError if the turn does not come in time."""
        self._waiting.append(arrival)
        if not self._turn.acquire(timeout):
            # Somebody may keep it yet: it is sent again, and counted once.
            raise StorageError("storage-busy")
        try:
            group = [] if arrival.is_settled else [self._waiting.popleft() for _ in range(len(self._waiting))]
            if group:
                self._settle(group)
        finally:
            self._turn.release()

    def _settle(self, group: Sequence[Arrival]) -> None:
        failed: LdpError | None = StorageError("storage-unavailable")  # whatever ends this, nobody is told it was kept
        try:
            self._keep(group)
            failed = None
        except LdpError as error:
            failed = error
        finally:
            for arrival in group:
                arrival.refused, arrival.is_settled = failed or arrival.refused, True


class Batches(Aggregator):
    """The aggregator, where it takes the batches that a relay mixed of whole uploads: those of one queue, ``sealed`` or
    not.
    """

    def __init__(self, *arguments: Any, sealed: bool, vouch: Vouch) -> None:
        super().__init__(*arguments)
        self._sealed, self._vouch = sealed, vouch

    def upload(self, body: bytes, attempt: int, token: bytes | None = None) -> Request:
        """See :meth:`Aggregator.upload`; ``body`` is an upload of the queued reports, whose payloads are whole uploads,
        and with them their tokens.
        """
        ((_, ids, uploads),) = msgpack.unpackb(body)[1]
        named = [ids[place : place + ID_BYTES] for place in range(0, len(ids), ID_BYTES)]
        path, headers = f"/v1/campaigns/{self.campaign_id}/batch", {"Content-Type": ANSWERS_TYPE}
        if self._sealed:
            length = len(uploads) // len(named)
            path, headers = "/v1/ohttp/batch", {"Content-Type": BATCH_TYPE, LENGTH_HEADER: str(length)}
        headers |= self._vouch(named)
        return Request("POST", self.base + path, headers, uploads, attempt, LARGEST_ANSWER, self.campaign_id)

    def opened(self, answer: Response) -> Response:
        """See :meth:`Aggregator.opened`. The whole batch is settled, however many of it the campaign took. A failure of
        a whole batch is no upload's fault, so the batch is not split to find one.
        """
        if answer.status == 200 and _has_count(answer):
            return Response(200, {}, _ANSWER)
        if answer.status in RETRYABLE_STATUSES | SPLIT_STATUSES:
            return answer
        code = answer.problem_code() or f"http-{answer.status}"
        raise TransportError(code, f"the gateway answers {answer.status} ({code})", answer.status)


def _has_count(answer: Response) -> bool:
    try:
        return isinstance(json.loads(answer.body)["taken"], int)
    except (ValueError, TypeError, KeyError):
        return False
