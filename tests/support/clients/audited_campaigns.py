"""Campaigns that clients are audited on, and all those that sound ones must pass: every mechanism alone, one and all
of several, with projections.
"""

from functools import cache

from drafts import draft, number, text

from ldp_aggregator.cli.audit import single_question as question
from ldp_protocols import Campaign


def compiled(classes, weight, features, **changes):
    """A campaign about features, and a label that is asked by itself with this weight."""
    label = {"name": "y", "classes": [f"c{n}" for n in range(classes)], "weight": weight}
    return Campaign.compile(draft(*features, label=label, **changes)).document.decode()


@cache
def campaign(*sizes, numbers=0, classes=2, label=0, missing=False, **privacy):
    """A campaign with a feature of so many values for each of the sizes, and so many numbers."""
    features = [text(f"f{n}", *map(str, range(size)), missing=missing) for n, size in enumerate(sizes)]
    features += [number(f"x{n}", 0, 10, missing=missing) for n in range(numbers)]
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
    features = [text("f0", *"012"), number("x0", 0, 10), number("x1", 0, 10)]
    projection = {
        "method": "pca",
        "inputs": ["x0", "x1"],
        "mean": [5, 5],
        "scale": [5, 5],
        "matrix": [[0.6, 0.8], [0.8, -0.6]],
        "outputs": [number("first", -1, 1, bins=4), number("second", -1.5, 1.5)],
        "fitted_on": "public",
    }
    privacy = {"epsilon": 2.0, "answers": answers, "discrete": discrete, "continuous": continuous}
    return compiled(2, 0, features, privacy=privacy, projection=projection)


SERIES = compiled(
    2,
    0,
    [text("f0", "0", "1", "2")],
    privacy={"epsilon": 1.0, "discrete": "de"},
    windows={"from": "2027-01-04T00:00:00Z", "length": "P7D", "count": 52},
)

CAMPAIGNS = {
    **{name: question(name, size, 1.0) for name, size in (("de", 4), ("ss", 8), ("oue", 4))},
    "sue": question("sue", 4, 2.0),
    **{name: question(name, size, 1.0) for name, size in (("the", 4), ("she", 3), ("laplace", 2), ("onebit", 2))},
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
