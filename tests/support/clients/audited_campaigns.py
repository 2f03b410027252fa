"""Campaigns that clients are audited on, and all those that sound ones must pass: every mechanism alone, one and all
of several, with projections.
"""

import json
from functools import cache

from ldp_aggregator.cli.audit import single_question
from protocols import Campaign


def question(mechanism, size, epsilon):
    """A campaign that asks a label of ``size`` classes, or a value with it."""
    return single_question(mechanism, size, epsilon)


def compiled(classes, label, features, **draft):
    """A campaign about features, and a label that is asked by itself with the weight ``label``."""
    head = {"version": 1, "title": "t", "label": {"name": "y", "classes": [f"c{n}" for n in range(classes)]}}
    head["label"] |= {"weight": label}
    return Campaign.compile({**head, "features": features, **draft}).document.decode()


@cache
def campaign(*sizes, numbers=0, classes=2, label=0, missing=False, **privacy):
    """A campaign with a feature of so many values for each of the sizes, and so many numbers."""
    features = [
        {"name": f"f{number}", "kind": "categorical", "missing": missing, "values": [str(n) for n in range(size)]}
        for number, size in enumerate(sizes)
    ]
    features += [
        {"name": f"x{number}", "kind": "continuous", "missing": missing, "low": 0, "high": 10}
        for number in range(numbers)
    ]
    return compiled(classes, label, features, privacy={"epsilon": 1.0, "discrete": "de", **privacy})


@cache
def scores():
    """An evaluation of one model."""
    table = {"f0": [[0.6, 0.2], [0.3, 0.3], [0.1, 0.5]], "f1": [[0.8, 0.3], [0.2, 0.7]]}
    features = [
        {"name": name, "kind": "categorical", "values": [str(n) for n in range(len(likelihood))]}
        for name, likelihood in table.items()
    ]
    told = [{**feature, "likelihood": table[feature["name"]]} for feature in features]
    head = {"version": 1, "kind": "naive-bayes", "label": "y", "classes": ["c0", "c1"], "prior": [0.45, 0.55]}
    evaluation = {"model": {**head, "features": told}}
    return compiled(2, 0, features, privacy={"epsilon": 1.0}, asks="score", study="s", evaluation=evaluation)


def projected(answers, discrete="oue", continuous="laplace"):
    """A campaign with a projection, one of whose outputs is discretised and one is not."""
    given = json.loads(campaign(3, numbers=2))["features"]
    features = [{k: v for k, v in of.items() if k != "bins"} for of in given]
    projection = {
        "method": "pca",
        "inputs": ["x0", "x1"],
        "mean": [5, 5],
        "scale": [5, 5],
        "matrix": [[0.6, 0.8], [0.8, -0.6]],
        "outputs": [
            {"name": "first", "kind": "continuous", "missing": False, "low": -1, "high": 1, "bins": 4},
            {"name": "second", "kind": "continuous", "missing": False, "low": -1.5, "high": 1.5},
        ],
        "fitted_on": "public",
    }
    privacy = {"epsilon": 2.0, "answers": answers, "discrete": discrete, "continuous": continuous}
    return compiled(2, 0, features, privacy=privacy, projection=projection)


CAMPAIGNS = {
    "de": question("de", 4, 1.0),
    "ss": question("ss", 8, 1.0),
    "oue": question("oue", 4, 1.0),
    "sue": question("sue", 4, 2.0),
    "the": question("the", 4, 1.0),
    "she": question("she", 3, 1.0),
    "laplace": question("laplace", 2, 1.0),
    "onebit": question("onebit", 2, 1.0),
    "sign": question("sign", 2, 1.0),
    "one of several": campaign(4, 2, numbers=1, label=1, continuous="laplace"),
    "all of several": campaign(4, label=1, epsilon=2.0, answers="all"),
    "all, one of them a number": campaign(4, 2, numbers=1, label=1, discrete="ss", continuous="sign", answers="all"),
    "one of several that may be missing": campaign(3, numbers=1, missing=True, epsilon=2.0, discrete="oue"),
    "all of several that may be missing": campaign(
        3, numbers=1, missing=True, epsilon=2.0, discrete="ss", answers="all"
    ),
    "one, with a projection": projected("one", "de", "onebit"),
    "all, with a projection": projected("all"),
}
