"""Devices over real HTTP: each one the real client, a network that fails on purpose, a running aggregator."""
