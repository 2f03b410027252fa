from ldp_aggregator.issuer.issuing import TokenIssuer as TokenIssuer
from ldp_aggregator.issuer.issuing import make_issuer_key as make_issuer_key
from ldp_aggregator.issuer.issuing import public_key as public_key
from ldp_aggregator.issuer.issuing import read_issuer_key as read_issuer_key
