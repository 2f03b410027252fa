"""Experiments that reproduce the papers' figures: each writes a table, a plot and, where it compares, a page."""
