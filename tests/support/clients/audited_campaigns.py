"""Campaigns that sound clients are audited on: every mechanism alone, one and all of several, with projections."""

from __future__ import annotations

from collections.abc import Callable

from mutants import question
from mutants_around import categories
from planted.witness import compiled, draft

from protocols import Campaign

PROJECTION = {
    "method": "pca",
    "inputs": ["x", "y"],
    "mean": [5, 10],
    "scale": [5, 10],
    "matrix": [[0.6, 0.8], [0.8, -0.6]],
    "outputs": [
        {"name": "first", "kind": "continuous", "missing": False, "low": -1, "high": 1, "bins": 4},
        {"name": "second", "kind": "continuous", "missing": False, "low": -1.5, "high": 1.5},
    ],
    "fitted_on": "public",
}


def projected(answers: str, discrete: str = "oue", continuous: str = "laplace") -> str:
    """A campaign with a projection, one of whose outputs is discretised and one is not."""
    return Campaign.compile(
        {
            "version": 1,
            "title": "t",
            "label": {"name": "label", "classes": ["a", "b"]},
            "features": [
                {"name": "colour", "kind": "categorical", "missing": False, "values": ["red", "green", "blue"]},
                {"name": "x", "kind": "continuous", "missing": False, "low": 0, "high": 10},
                {"name": "y", "kind": "continuous", "missing": False, "low": 0, "high": 20},
            ],
            "privacy": {"epsilon": 2.0, "answers": answers, "discrete": discrete, "continuous": continuous},
            "projection": PROJECTION,
        }
    ).document.decode()


def incomplete(answers: str, discrete: str) -> str:
    """A campaign whose features may all be missing."""
    features = [
        {"name": "colour", "kind": "categorical", "values": ["red", "green", "blue"]},
        {"name": "x", "kind": "continuous", "low": 0, "high": 10},
    ]
    head = {"version": 1, "title": "t", "label": {"name": "label", "classes": ["a", "b"]}, "features": features}
    return Campaign.compile(
        {**head, "privacy": {"epsilon": 2.0, "answers": answers, "discrete": discrete}}
    ).document.decode()


CAMPAIGNS: dict[str, Callable[[], str]] = {
    "de": lambda: question("de", 4, 1.0),
    "ss": lambda: question("ss", 8, 1.0),
    "oue": lambda: question("oue", 4, 1.0),
    "sue": lambda: question("sue", 4, 2.0),
    "the": lambda: question("the", 4, 1.0),
    "she": lambda: question("she", 3, 1.0),
    "laplace": lambda: question("laplace", 2, 1.0),
    "onebit": lambda: question("onebit", 2, 1.0),
    "sign": lambda: question("sign", 2, 1.0),
    "one of several": lambda: compiled(draft(shapes=True, sizes=True, label=1)).document.decode(),
    "all of several": lambda: categories([4], epsilon=2.0, answers="all", discrete="de"),
    "all, one of them a number": lambda: compiled(
        draft(discrete="ss", continuous="sign", shapes=True, sizes=True, label=1, answers="all")
    ).document.decode(),
    "one of several that may be missing": lambda: incomplete("one", "oue"),
    "all of several that may be missing": lambda: incomplete("all", "ss"),
    "one, with a projection": lambda: projected("one", "de", "onebit"),
    "all, with a projection": lambda: projected("all"),
}
