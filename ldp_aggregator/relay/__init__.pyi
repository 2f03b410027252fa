from ldp_aggregator.relay.forwarding import BATCH_HEADER as BATCH_HEADER
from ldp_aggregator.relay.forwarding import RELAY_POLICY as RELAY_POLICY
from ldp_aggregator.relay.forwarding import Relay as Relay
from ldp_aggregator.relay.mixing import Mixing as Mixing
