"""Experimental: nodes draw their noise together, Flower's SecAgg+ adds up what they send. See ``agreement.WORDS``."""
