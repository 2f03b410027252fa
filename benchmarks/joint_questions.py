"""Two questions of different devices, or both in one answer: the ratio of the variances, predicted and measured.

    python benchmarks/joint_questions.py

The same devices and the same total epsilon; even classes, numbers spread evenly between their bounds (where they may be
missing, none is), features of even coins. Predicted: `ldp_aggregator.estimation.expected`, exactly. Measured: the
estimates of many campaigns of so many devices, drawn from the exact laws of the reports, with the standard error of the
ratio.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.estimators import estimate_question
from ldp_aggregator.estimation.expected import answers, even_variances
from ldp_aggregator.estimation.joint import marginal_of
from ldp_aggregator.estimation.moments import part_of
from protocols import Campaign, Question
from protocols.document.questions import PAIR, SIGNS, SQUARE, TRIPLE, VALUE, signs_of
from simulations.fidelities.tallying import tally_cells

Array = NDArray[np.float64]

NUMBERS = [{"name": "x", "kind": "continuous", "missing": False, "low": 0, "high": 1}]
OPEN_NUMBERS = [{**NUMBERS[0], "missing": True}]
"""May be missing, which they hardly ever are."""
BINARY = [{"name": name, "kind": "categorical", "missing": False, "values": ["p", "q"]} for name in "uv"]
GRID = 10_001
"""Values of t that stand for all between -1 and 1."""


def campaign(features: list[dict[str, Any]], classes: int, epsilon: float, *, joint: bool) -> Campaign:
    return Campaign.compile(
        {
            "version": 1,
            "title": "t",
            "label": {"name": "y", "classes": [f"c{c}" for c in range(classes)]},
            "features": features,
            "privacy": {"epsilon": epsilon, "continuous": "sign", "joint": joint},
        }
    )


def cells_of(question: Question, classes: int) -> Array:
    """How the items of an even population are spread, shape (domain_size,)."""
    t = np.linspace(-1, 1, GRID)
    value, square = (1 + t) / 2, t * t
    if question.kind == VALUE:
        shares = np.array([1 - value.mean(), value.mean()])
    elif question.kind == SQUARE:
        shares = np.array([1 - square.mean(), square.mean()])
    elif question.kind == SIGNS:
        shares = np.array([(a * b).mean() for a in (1 - value, value) for b in (1 - square, square)])
    else:
        return np.full(question.domain_size, 1 / question.domain_size)
    if signs_of(question, classes) % 2:
        shares = np.append(shares, 0.0)
    return np.tile(shares, classes) / classes


def drawn(one: Campaign, question: Question, devices: int, runs: int, rng: np.random.Generator) -> Array:
    """Estimates of what both ways tell, shape (runs, quantities): sums of value and square, or a feature's cells."""
    classes, n = len(one.label.classes), round(answers(one, devices)[question.index])
    shares = cells_of(question, classes)
    found = []
    for _ in range(runs):
        counts = tally_cells(question.mechanism, rng.multinomial(n, shares), rng)
        told = estimate_question(question, n, counts, classes, "none")
        if question.kind == TRIPLE:
            found.append(_contrasts(marginal_of(told, "u").value, classes))
        elif question.kind == PAIR:
            found.append(_contrasts(told.cells.value, classes))
        else:
            found.append(part_of(told, VALUE).cells.value)
    return np.array(found)


def _contrasts(cells: Array, classes: int) -> Array:
    """P(q, class) - P(p, class)."""
    told: Array = np.diff(cells.reshape(2, classes), axis=0)[0]
    return told


def predicted(one: Campaign, question: Question) -> float:
    """Devices times the variance of such a quantity."""
    classes = len(one.label.classes)
    share = answers(one, 1)[question.index]
    if question.kind not in (PAIR, TRIPLE):
        return float(even_variances(one)[question.index][:classes].mean()) / share
    mechanism: Any = question.mechanism
    return float(mechanism.signs_variance(question.domain_size // classes, 1 / classes) + 1 / classes) / share


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=4_000)
    parser.add_argument("--devices", type=int, default=20_000)
    options = parser.parse_args()
    print("| asked | classes | epsilon | predicted | measured |\n|---|---|---|---|---|")
    for name, features, kinds in (
        ("value and square", NUMBERS, (VALUE, SIGNS)),
        ("value and square, may be missing", OPEN_NUMBERS, (VALUE, SIGNS)),
        ("two features", BINARY, (PAIR, TRIPLE)),
    ):
        rng = np.random.default_rng(0)
        for classes in (2, 10):
            for epsilon in (2.5, 3.0, 4.0):
                expected, measured, relative = [], [], []
                for joint, kind in zip((False, True), kinds, strict=True):
                    one = campaign(features, classes, epsilon, joint=joint)
                    question = next(q for q in one.questions if q.kind == kind)
                    values = drawn(one, question, options.devices, options.runs, rng)
                    variances = values.var(axis=0, ddof=1)
                    expected.append(predicted(one, question))
                    measured.append(variances.mean())
                    # Of normal estimates, which sums of many reports nearly are; those of one run hardly go together.
                    relative.append(np.sqrt(2 * (variances**2).sum()) / variances.sum() / np.sqrt(options.runs))
                ratio = measured[0] / measured[1]
                told = f"{expected[0] / expected[1]:.3f} | {ratio:.3f} ± {ratio * np.hypot(*relative):.3f}"
                print(f"| {name} | {classes} | {epsilon:g} | {told} |")


if __name__ == "__main__":
    main()
