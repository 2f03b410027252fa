"""A node's half of the round: is this the campaign that was agreed to, what is the share, and is it on disk.

No flwr here: the client app hands in what came with the query and its node's settings, and sends what comes back.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from ldp_aggregator.flower.ledger import Ledger
from ldp_aggregator.flower.messages import (
    NOT_READY,
    OTHER_CAMPAIGN,
    OTHER_SCHEMA,
    UNREADABLE,
    NodeRefusalError,
    document_in,
)
from ldp_aggregator.flower.settings import NodeSettings
from ldp_aggregator.trainers.csv_tables import read_table
from ldp_aggregator.trainers.federation.state import node_statistics
from ldp_aggregator.trainers.schemas import Schema
from protocols.document.authored import MODEL
from protocols.document.campaign import Campaign
from protocols.errors import ProtocolError


def answer(settings: NodeSettings, values: Mapping[str, object]) -> dict[str, bytes]:
    """The values of the answer to a query: this node's share, the same bytes whenever it is asked.

    Raises NodeRefusalError.
    """
    campaign = _agreed_campaign(settings, document_in(values))
    ledger = Ledger(settings.ledger)
    share = ledger.share(campaign.id)
    if share is None:
        drawn = _drawn_share(settings, campaign)
        share = ledger.keep(campaign.id, campaign.privacy.epsilon, drawn, max_epsilon=settings.max_epsilon)
    return {"share": share}


def _agreed_campaign(settings: NodeSettings, document: bytes) -> Campaign:
    """The campaign of document bytes whose hash is the id that the node agreed to. Raises NodeRefusalError."""
    try:
        campaign = Campaign.parse(document, settings.campaign_id)
    except ProtocolError as error:
        code = OTHER_CAMPAIGN if error.code == "wrong-hash" else UNREADABLE
        raise NodeRefusalError(code, str(error)) from None
    if campaign.asks != MODEL:
        raise NodeRefusalError(UNREADABLE, f'the campaign asks for "{campaign.asks}"; nodes answer for a "{MODEL}"')
    return campaign


def _drawn_share(settings: NodeSettings, campaign: Campaign) -> bytes:
    """A fresh share of the node's table. Raises NodeRefusalError, which tells the server nothing of the rows."""
    schema = Schema.of_campaign(campaign)
    try:
        present = set(pd.read_csv(settings.table, nrows=0).columns)
        for name in (*schema.input_names, schema.label.name):
            if name not in present:
                raise NodeRefusalError(OTHER_SCHEMA, f"the node's table has no column {name!r}")
        return node_statistics(campaign, *read_table(settings.table, schema))
    except (OSError, ValueError) as error:
        raise NodeRefusalError(NOT_READY, detail=str(error)) from error
