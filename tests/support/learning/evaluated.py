"""A study to evaluate: a campaign, and a model with a known accuracy. Without numpy: devices are tested with it."""

from ldp_protocols import Campaign

DESCRIBED = [
    {"name": "u", "kind": "categorical", "values": ["1", "2", "3"]},
    {"name": "v", "kind": "categorical", "values": ["p", "q"]},
    {"name": "size", "kind": "continuous", "low": 0, "high": 10},
]
FEATURES = [{**one, "missing": False} for one in DESCRIBED]
LABEL = {"name": "y", "classes": ["a", "b"]}


def draft(**changes):
    base = {"version": 1, "title": "Learn", "label": LABEL, "features": FEATURES, "privacy": {"epsilon": 1}}
    return {**base, "study": "s", **changes}


def model(*features, prior=(0.6, 0.4)):
    head = {"version": 1, "kind": "naive-bayes", "label": "y", "classes": ["a", "b"], "prior": list(prior)}
    return {**head, "features": [*features]}


U = {**DESCRIBED[0], "likelihood": [[0.75, 0.01], [0.24, 0.24], [0.01, 0.75]]}
V = {**DESCRIBED[1], "likelihood": [[0.6, 0.3], [0.4, 0.7]]}
WRONG = {**DESCRIBED[0], "likelihood": U["likelihood"][::-1]}


def evaluation(*features, **changes):
    """A round about a model of these features, by default of both discrete ones."""
    asked = {"title": "How good?", "asks": "score", "evaluation": {"model": model(*(features or (U, V)))}}
    return Campaign.compile(draft(**asked | changes))
