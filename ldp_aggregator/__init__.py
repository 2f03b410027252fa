"""The aggregator: adds reports up, estimates without bias, builds the Naive Bayes model that goes back to devices."""

from ldp_protocols.names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__spec__)
