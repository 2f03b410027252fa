"""Training where the data is: global and smooth sensitivity, sufficient statistics, federated nodes, k-means, queries.

Everything takes a table and a schema with public bounds, draws exact noise, and states what it guarantees.
"""
