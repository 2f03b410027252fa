"""A small draft, for tests that are about one part of it."""


def draft(*features, **changes):
    """Of these features and a label of two classes, at epsilon 1."""
    base = {"version": 1, "title": "t", "label": {"name": "y", "classes": ["a", "b"]}, "features": [*features]}
    return {**base, "privacy": {"epsilon": 1.0}, **changes}


def text(name, *values, **said):
    """A complete feature of these values."""
    return {"name": name, "kind": "categorical", "missing": False, "values": [*values], **said}


def number(name, low=0, high=1, **said):
    """A complete feature of a number."""
    return {"name": name, "kind": "continuous", "missing": False, "low": low, "high": high, **said}
