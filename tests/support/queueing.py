"""Uploads in front of the writer's queue, without a connection."""

from ldp_aggregator.server.intake import Waiting
from ldp_aggregator.server.upload_queue import for_a_relay
from ldp_aggregator.service.settings import Limits
from ldp_protocols.wire import encode_blocks


async def submit(ingest, submission):
    """Wait for the commit of a relay's upload: those stay by themselves."""
    upload = Waiting(
        for_a_relay(submission.campaign, Limits(), None), encode_blocks(submission.blocks, submission.campaign)
    )
    ingest.take(upload)
    return await upload.answer
