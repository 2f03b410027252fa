"""The commands of ``python -m simulations``."""
