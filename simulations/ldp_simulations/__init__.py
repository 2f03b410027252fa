"""Populations of simulated devices: what a campaign would learn, before anyone is asked."""

from ldp_protocols.names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__spec__)
