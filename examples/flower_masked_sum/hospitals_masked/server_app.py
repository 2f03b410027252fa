"""The server's half."""

from hospitals_masked.campaign import CAMPAIGN
from ldp_aggregator.flower.masked_sum.server import masked_server_app

app = masked_server_app(CAMPAIGN)
