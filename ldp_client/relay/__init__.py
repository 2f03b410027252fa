"""A gateway at the edge: ``Relay`` is the queue and its sender, ``relay.gateway`` the door for devices.

Not in the small wheel ``ldp-bayes-client``: a device does not relay.
"""

from ldp_client.relay.forwarding import CONFLICTING, RELAY_POLICY, Relay

__all__ = ["CONFLICTING", "RELAY_POLICY", "Relay"]
