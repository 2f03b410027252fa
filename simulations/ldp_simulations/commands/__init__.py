"""The commands of ``ldp-simulate``."""
