"""A gateway at the edge: ``Relay`` mixes and forwards, ``relay.gateway`` is the door for devices."""

from ldp_protocols.names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__spec__)
