"""Exact arithmetic and exact coins: no floating-point number decides anything about privacy."""
