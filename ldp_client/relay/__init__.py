"""A gateway at the edge: ``Relay`` mixes and forwards, ``relay.gateway`` is the door for devices.

Not in the small wheel ``ldp-bayes-client``: a device does not relay.
"""

from protocols.names import loaded_on_use

with loaded_on_use(globals()):
    from ldp_client.relay.forwarding import CONFLICTING as CONFLICTING
    from ldp_client.relay.forwarding import RELAY_POLICY as RELAY_POLICY
    from ldp_client.relay.forwarding import Relay as Relay
    from ldp_client.relay.mixing import BATCH_HEADER as BATCH_HEADER
    from ldp_client.relay.mixing import Mixing as Mixing
