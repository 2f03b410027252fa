"""A federated campaign on Flower: nodes answer one query with their share, a server app makes the model of them.

``client`` and ``server`` import flwr (``pip install 'ldp-bayes[flower]'``, Python 3.11); everything else here does not.
"""
