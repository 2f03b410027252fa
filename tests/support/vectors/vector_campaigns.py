"""The campaigns that the test vectors are about: every mechanism and encoding, every shape."""

from __future__ import annotations

import json
from typing import Any

from protocols import Campaign

FEATURES = [
    {"name": "colour", "kind": "categorical", "values": ["red", "green", "0", "missing"]},
    {"name": "größe", "kind": "continuous", "low": -1.5, "high": 2, "bins": 5, "missing": False},
    {"name": "hours", "kind": "continuous", "low": 0, "high": 100, "weight": 2, "missing": False},
]
INCOMPLETE = [
    {"name": "colour", "kind": "categorical", "values": ["red", "green", "0"]},
    {"name": "größe", "kind": "continuous", "low": -1.5, "high": 2, "bins": 5},
    {"name": "hours", "kind": "continuous", "low": 0, "high": 100, "weight": 2},
    {"name": "age", "kind": "continuous", "low": 0, "high": 10, "missing": False},
]
"""A value may be missing, but of the last one."""

LABEL = {"name": "class", "classes": ["yes", "no", "unknown"]}
PAIRS = {
    "de-onebit": ("de", "onebit"),
    "ss-laplace": ("ss", "laplace"),
    "oue-sign": ("oue", "sign"),
    "sue-laplace": ("sue", "laplace"),
    "the-sign": ("the", "sign"),
    "she-onebit": ("she", "onebit"),
}


def draft(**changes: Any) -> dict[str, Any]:
    base = {"version": 1, "title": "Vectors", "label": LABEL, "features": FEATURES, "privacy": {"epsilon": 1.0}}
    return base | changes


def campaigns() -> dict[str, Campaign]:
    """Every mechanism and encoding, every shape of campaign, by name."""
    drafts = {
        name: draft(privacy={"epsilon": 1.0, "discrete": discrete, "continuous": continuous})
        for name, (discrete, continuous) in PAIRS.items()
    }
    drafts["small-epsilon"] = draft(privacy={"epsilon": 0.1, "discrete": "she", "continuous": "laplace"})
    drafts["all"] = draft(title="Alle Fragen – ja", privacy={"epsilon": 3.3, "answers": "all"}, study="s")
    drafts["wide"] = draft(
        label={"name": "class", "classes": ["yes", "no"], "weight": 0},
        features=[{"name": "colour", "kind": "categorical", "values": [f"v{i}" for i in range(150)], "missing": False}],
        privacy={"epsilon": 4, "discrete": "de"},
        opens="2026-01-01T00:00:00Z",
        closes="2027-01-01T00:00:00Z",
    )
    for name, discrete, epsilon in (
        ("missing-de", "de", 2.0),
        ("missing-oue", "oue", 1.0),
        ("missing-she", "she", 0.5),
    ):
        drafts[name] = draft(features=INCOMPLETE, privacy={"epsilon": epsilon, "discrete": discrete})
    drafts["missing-all"] = draft(features=INCOMPLETE, privacy={"epsilon": 2.5, "answers": "all"})
    numbers = [
        {"name": n, "kind": "continuous", "low": 0, "high": 10, "missing": False} for n in ("größe", "hours", "age")
    ]
    drafts["projection"] = draft(
        features=[FEATURES[0], *numbers],
        projection={
            "method": "pca",
            "inputs": ["größe", "hours"],
            "mean": [5.0, 4.25],
            "scale": [2.5, 3.0],
            "matrix": [[0.6, 0.8], [-0.8, 0.6]],
            "outputs": [
                {"name": "first", "kind": "continuous", "low": -3, "high": 3, "missing": False},
                {"name": "second", "kind": "continuous", "low": -2, "high": 2, "bins": 4, "missing": False},
            ],
            "fitted_on": "public",
        },
    )
    drafts["projection-missing"] = json.loads(json.dumps(drafts["projection"]))
    for described in (
        drafts["projection-missing"]["features"][1],
        *drafts["projection-missing"]["projection"]["outputs"],
    ):
        del described["missing"]
    drafts["xor"] = draft(
        label={"name": "class", "classes": ["yes", "no"]},
        features=[
            {"name": "colour", "kind": "categorical", "values": ["red", "green"], "weight": 3, "missing": False},
            {"name": "größe", "kind": "continuous", "low": -1.5, "high": 2, "bins": 2, "missing": False},
            FEATURES[2],
        ],
    )
    drafts["joint"] = draft(
        label={"name": "class", "classes": ["yes", "no"]},
        features=[
            {"name": "colour", "kind": "categorical", "values": ["red", "green"], "missing": False},
            {"name": "größe", "kind": "continuous", "low": -1.5, "high": 2, "bins": 2, "missing": False},
            FEATURES[2],
        ],
        privacy={"epsilon": 3.0},
    )
    drafts["score"] = draft(
        label={"name": "class", "classes": ["yes", "no"]}, asks="score", study="s", candidates=_candidates()
    )
    drafts["moments"] = draft(features=numbers, asks="moments", study="s")
    drafts["moments-missing"] = draft(features=[INCOMPLETE[2], *numbers[::2]], asks="moments", study="s")
    drafts["joint-missing"] = draft(features=[INCOMPLETE[0], *INCOMPLETE[2:]], privacy={"epsilon": 3.0})
    drafts["joint-missing-ss"] = draft(
        label={"name": "class", "classes": [*LABEL["classes"], *(f"c{n}" for n in range(9))]},
        features=[INCOMPLETE[2]],
        privacy={"epsilon": 2.5},
    )
    drafts["joint-missing-all"] = draft(features=INCOMPLETE, privacy={"epsilon": 15.0, "answers": "all"})
    ordered = [INCOMPLETE[0], {"name": "age", "kind": "categorical", "values": ["5", "6"]}]
    drafts["ordered"] = draft(features=[*({**one, "ordered": True} for one in ordered), INCOMPLETE[1]])
    return {name: Campaign.compile(one) for name, one in drafts.items()}


def _candidates() -> list[dict[str, Any]]:
    """Models of the features above: of all of them, of one, and of none."""

    def model(name: str, *features: dict[str, Any]) -> dict[str, Any]:
        head = {"version": 1, "kind": "naive-bayes", "label": "class", "classes": ["yes", "no"]}
        return {"name": name, "model": {**head, "prior": [0.4, 0.6], "features": [*features]}}

    colour = {
        **{key: FEATURES[0][key] for key in ("name", "kind", "values")},
        "likelihood": [[0.5, 0.1], [0.2, 0.3], [0.2, 0.2], [0.1, 0.4]],
    }
    size = {
        **{key: FEATURES[1][key] for key in ("name", "kind", "low", "high", "bins")},
        "likelihood": [[0.6, 0.1], [0.1, 0.2], [0.1, 0.2], [0.1, 0.2], [0.1, 0.3]],
    }
    hours = {"name": "hours", "kind": "gaussian", "low": 0, "high": 100, "mean": [20, 70], "variance": [400, 900]}
    return [model("everything", colour, size, hours), model("hours", hours), model("prior")]


def as_text(value: Any) -> str:
    """JSON without white space."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
