"""The server's half."""

from hospitals.campaign import CAMPAIGN
from ldp_aggregator.flower.server import server_app

app = server_app(CAMPAIGN)
