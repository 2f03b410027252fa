"""Sealed uploads (Oblivious HTTP, RFC 9458): one by one from anybody's relay, and in the batches of a relay of ours;
and in the clear the batches of answers that each show a token.

The gateway takes uploads and nothing else. What is inside counts like an upload that came by itself, with its own
headers; what a relay says outside is about its batch. A request that is sent again is harmless (RFC 9458, section 6.5):
reports have ids.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from aiohttp import web
from multidict import CIMultiDict

from ldp_aggregator.server.access import shown_token
from ldp_aggregator.server.api.routing import JSON, STORED, AdmittedRequest, Context, Operation, object_of
from ldp_aggregator.server.gateway import Inside, SealedUpload
from ldp_aggregator.server.intake import vouched_batch
from ldp_aggregator.server.problems import ProblemError, as_problem
from ldp_aggregator.server.upload_queue import UploadBounds, answer_to, for_a_device, read_upload
from ldp_aggregator.store.contract import CLOSING, NOT_OPEN, UNKNOWN
from ldp_protocols.oblivious import (
    BATCH_TYPE,
    LEAST_SEALED,
    LENGTH_HEADER,
    LONGEST_SEALED,
    REQUEST_TYPE,
    RESPONSE_TYPE,
)
from ldp_protocols.tokens import ANSWERS_TYPE, TOKEN_BYTES, credentials
from ldp_protocols.wire import Block, encode_blocks

_AGAIN: Final = {413, 500, 503}
"""Statuses after which a relay sends a batch again, as it is or in halves. Nobody's upload to another campaign can make
it do so."""

_LATER: Final = {CLOSING, NOT_OPEN, UNKNOWN, "batch-too-small"}
"""Codes of a campaign that may take the batch another time, or with others; where nothing else is in it, the relay
keeps it."""


async def post_sealed(request: AdmittedRequest) -> web.Response:
    """Open a sealed upload, count it, and seal the answer; answered after the commit that holds it is on disk."""
    gateway = request.context.gateway
    gateway.check_open()
    opened = await gateway.open_in_turn(await request.body())
    answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def settle(sealed: bytes) -> None:
        if not answer.done():
            answer.set_result(sealed)

    SealedUpload(opened, request.context.intake, gateway.departures, settle).begin()
    return web.Response(body=await answer, content_type=RESPONSE_TYPE)


async def post_sealed_batch(request: AdmittedRequest) -> web.Response:
    """Count the sealed uploads that a relay mixed. The answer says how many were uploads that a campaign takes."""
    context, headers = request.context, request.http.headers
    await shown_token(headers, context.store, "relay")
    context.gateway.check_open()
    vouched_batch(headers)
    length = _length(headers)
    body = await request.body()
    if not body or len(body) % length:
        raise ProblemError("malformed-request", f"a batch is one or more requests of {length} bytes each")
    uploads = await _uploads(context, body, length)
    of_campaigns: dict[str, list[Inside]] = {}
    for upload in uploads:
        of_campaigns.setdefault(upload.campaign_id, []).append(upload)
    ends = [await _counted(campaign_id, members, headers, context) for campaign_id, members in of_campaigns.items()]
    taken = sum(end for end in ends if isinstance(end, int))
    later = [end for end in ends if isinstance(end, ProblemError) and end.code in _LATER]
    if later and not taken:
        raise later[0]
    return web.json_response({"taken": taken})


async def post_answers(request: AdmittedRequest) -> web.Response:
    """Count the answers that a relay mixed in the clear, each with its token, as the sealed uploads of a batch."""
    context, headers, campaign_id = request.context, request.http.headers, request.campaign_id
    await shown_token(headers, context.store, "relay")
    vouched_batch(headers)
    campaign = (await context.intake.bounds(campaign_id, headers, checked=True)).campaign
    length = TOKEN_BYTES + campaign.upload_bytes
    body = await request.body()
    if campaign.issuer is None or not body or len(body) % length:
        raise ProblemError("malformed-request", f"a batch is answers with their tokens, of {length} bytes each")
    parts = [body[place : place + length] for place in range(0, len(body), length)]
    uploads = [
        Inside(campaign_id, CIMultiDict(Authorization=credentials(one[:TOKEN_BYTES])), one[TOKEN_BYTES:])
        for one in parts
    ]
    taken = await _counted(campaign_id, uploads, headers, context)
    if isinstance(taken, ProblemError):
        raise taken
    return web.json_response({"taken": taken})


def _length(headers: Mapping[str, str]) -> int:
    text = headers.get(LENGTH_HEADER, "")
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text) >= LEAST_SEALED):
        raise ProblemError("malformed-request", f"{LENGTH_HEADER} must be a whole number from {LEAST_SEALED} on")
    return int(text)


async def _uploads(context: Context, body: bytes, length: int) -> list[Inside]:
    """The uploads of a batch. What is none hurts nobody but itself: a relay cannot tell, and must not be stopped. The
    device has its 202: nobody hears why, but in the metrics.
    """
    sealed = [body[place : place + length] for place in range(0, len(body), length)]
    uploads = []
    for opened in await context.gateway.open_all(sealed):
        try:
            if isinstance(opened, ProblemError):
                raise opened
            uploads.append(Inside.of(opened.request))
        except ProblemError as problem:
            context.metrics.refusals.labels(problem.code).inc()
    return uploads


async def _counted(
    campaign_id: str, uploads: Sequence[Inside], relays: Mapping[str, str], context: Context
) -> int | ProblemError:
    """The number of these uploads that were taken, or why none was. Raises ProblemError where the relay is to come
    again.
    """
    try:
        return await _count(campaign_id, uploads, relays, context)
    except Exception as error:  # Whatever it is, the relay gets a document.
        problem = as_problem(error, context.metrics)
        context.intake.note_refused(campaign_id, problem.code)
        if problem.status in _AGAIN:
            raise problem from None
        return problem


async def _count(campaign_id: str, uploads: Sequence[Inside], relays: Mapping[str, str], context: Context) -> int:
    """Count the uploads of a batch to one campaign as one, for which the relay's headers speak; returns how many these
    are. Each has to be welcome by its own headers, too, but where the campaign asks for a relay's token. Raises
    ProblemError.
    """
    intake = context.intake
    bounds = await intake.bounds(campaign_id, relays, checked=True)
    if not bounds.is_relay:
        raise bounds.stranger or ProblemError("wrong-campaign")
    welcome = list(uploads)
    crowd = bounds.campaign.privacy.crowd
    if crowd is None and await intake.access.uploads_need(campaign_id) != "relay":
        welcome = [one for one in uploads if await _is_welcome(one, context)]
    body, count = await asyncio.to_thread(_together, welcome, for_a_device(bounds.campaign, context.limits))
    if crowd is None and bounds.batch is not None and 2 * count < bounds.batch:
        # A relay cannot tell garbage from uploads, and anybody can send it some. What it surrounded counts as if nobody
        # had vouched for it: what is stated of other batches is not to be lowered to one.
        bounds = replace(bounds, batch=None)
    if count:
        answer_to(await intake.counted(bounds, body, None))
    return count


async def _is_welcome(upload: Inside, context: Context) -> bool:
    intake = context.intake
    if intake.cached_bounds(upload.campaign_id, claims="Authorization" in upload.headers) is not None:
        return True
    try:
        await intake.bounds(upload.campaign_id, upload.headers)
    except ProblemError:
        return False
    return True


def _together(uploads: Iterable[Inside], bounds: UploadBounds) -> tuple[bytes, int]:
    """One upload of all that devices can have sent, and of how many it is."""
    parts: dict[int, list[Block]] = {}
    count = 0
    for upload in uploads:
        try:
            blocks = read_upload(bounds, upload.body, upload.headers.get("Authorization")).blocks
        except ProblemError:
            continue
        count += 1
        for block in blocks:
            parts.setdefault(block.question, []).append(block)
    merged = [
        Block(question, b"".join([one.ids for one in members]), b"".join([one.payloads for one in members]))
        for question, members in sorted(parts.items())
    ]
    return encode_blocks(merged, bounds.campaign), count


_BINARY: Final = {"type": "string", "format": "binary"}
_TAKEN: Final = object_of(taken={"type": "integer"})

OPERATIONS: Final = (
    Operation(
        "POST",
        "/v1/ohttp",
        post_sealed,
        query=None,
        for_pages=True,
        bodies={REQUEST_TYPE: _BINARY},
        longest=LONGEST_SEALED,
        answers={200: (RESPONSE_TYPE, _BINARY)},
        codes=("unknown-gateway-key", "malformed-sealed", *STORED),
    ),
    Operation(
        "POST",
        "/v1/ohttp/batch",
        post_sealed_batch,
        query=None,
        scopes=("relay",),
        optional_scopes=True,
        bodies={BATCH_TYPE: _BINARY},
        answers={200: (JSON, _TAKEN)},
        codes=(NOT_OPEN, CLOSING, "batch-too-small", "too-many-reports", *STORED),
    ),
    Operation(
        "POST",
        "/v1/campaigns/{id}/batch",
        post_answers,
        query=None,
        scopes=("relay",),
        optional_scopes=True,
        bodies={ANSWERS_TYPE: _BINARY},
        answers={200: (JSON, _TAKEN)},
        codes=(UNKNOWN, NOT_OPEN, CLOSING, "too-many-reports", *STORED),
    ),
)
