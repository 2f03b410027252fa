"""A gateway at the edge: ``Relay`` mixes and forwards, ``relay.gateway`` is the door for devices.

Not in the small wheel ``ldp-bayes-client``: a device does not relay.
"""

from ldp_client.relay.forwarding import CONFLICTING, RELAY_POLICY, Relay
from ldp_client.relay.mixing import BATCH_HEADER, Mixing

__all__ = ["BATCH_HEADER", "CONFLICTING", "RELAY_POLICY", "Mixing", "Relay"]
