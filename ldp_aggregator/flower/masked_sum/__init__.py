"""Experimental: nodes draw their noise together, and Flower's SecAgg+ adds up what they send. See ``agreement.WORDS``."""
