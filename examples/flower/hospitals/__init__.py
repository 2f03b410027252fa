"""A federated campaign as a Flower app; what it does is in ``ldp_aggregator.flower``."""
