"""Bounds of what made-up reports can do to an estimate."""
