"""Connections before HTTP: how many, how long, TLS, open files."""
