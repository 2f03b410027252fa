"""Connections: how many and for how long, uploads from their bytes, everything else handed to aiohttp, TLS."""
