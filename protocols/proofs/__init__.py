"""Proofs of a campaign's promise that take longer than a device has: every output enumerated."""
