from ldp_client.relay.forwarding import BATCH_HEADER as BATCH_HEADER
from ldp_client.relay.forwarding import CONFLICTING as CONFLICTING
from ldp_client.relay.forwarding import RELAY_POLICY as RELAY_POLICY
from ldp_client.relay.forwarding import Relay as Relay
from ldp_client.relay.mixing import Mixing as Mixing
