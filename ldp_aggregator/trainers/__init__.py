"""Training where the data is: global and smooth sensitivity, sufficient statistics, federated nodes, k-means, queries.

Everything takes a table and a schema with public bounds, draws exact noise, and states what it guarantees.
"""

from ldp_protocols.names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__spec__)
