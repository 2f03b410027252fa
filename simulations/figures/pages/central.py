"""The plots and the page of the trainers that hold the table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pandas as pd

from simulations.figures.central import (
    BUDGET_DATA,
    BUDGET_EPSILONS,
    DATA,
    DIVIDED,
    EPSILONS,
    SHARE,
    SHARES,
    TRAINERS,
    measure,
)
from simulations.figures.cross_validation import FOLDS, REFERENCES, REPEATS
from simulations.figures.figure import Figure
from simulations.figures.pages.comparisons import HOW, Comparison, compare, listed, markdown_table
from simulations.figures.pages.curves import (
    BLUE,
    GREEN,
    ORANGE,
    PINK,
    Style,
    add_legend,
    draw_curve,
    draw_references,
    finish_panel,
)
from simulations.figures.peer import NAME as PEER
from simulations.studies.plots import make_figure, save

NAME: Final = "global-and-smooth-figures"
COMMAND: Final = f"python -m simulations reproduce {NAME} --peer PYTHON"

EQUAL_SHARE: Final = 0.6
"""What the moments of adult's 6 numbers get when they and its 8 tables get the same: 12 parts of 20."""

TITLES: Final = {
    "adult": "Adult",
    "mushroom": "Mushroom",
    "skin": "Skin",
    "seeds": "Seeds",
    "adult-numeric": "Adult, numbers only",
    "diabetes": "Diabetes",
}
RELATIONS: Final = {
    "add-remove": "one row more or less; class sizes are private",
    "replace": "the values of one row change; labels and class sizes are public",
}
_LOOKS: Final = {"global": (BLUE, "o"), "smooth": (ORANGE, "s"), "sums": (GREEN, "D")}


def draw(table: pd.DataFrame, folder: Path) -> list[Path]:
    """Write a plot for each relation, and one about dividing epsilon; returns the paths."""
    return [*(_plot(table, relation, folder) for relation in RELATIONS), _plot_budget(table, folder)]


def guarantees(table: pd.DataFrame) -> str:
    """What the published curves really guarantee, as the table has it."""
    parts = []
    for name in (name for name in TRAINERS if name.endswith("published")):
        curve = table[table["trainer"] == name]
        ratios = (curve["guaranteed_epsilon"] / curve["epsilon"]).dropna()
        if ratios.empty:
            parts.append(f"{name} guarantees nothing")
        else:
            parts.append(
                f"{name} really guarantees {ratios.min():.2g} to {ratios.max():.2g} times that epsilon, with labels "
                "and class sizes public"
            )
    return "; ".join(parts)


def _curves(table: pd.DataFrame) -> pd.DataFrame:
    """Without the rows about dividing epsilon."""
    return table[table[SHARE].isna()]


def _peers(table: pd.DataFrame) -> list[str]:
    return [name for name in dict.fromkeys(table["trainer"]) if name.startswith(PEER)]


def _plot(table: pd.DataFrame, relation: str, folder: Path) -> Path:
    styles = {}
    for name in TRAINERS:
        kind, variant = name.split(", ")
        if variant in (relation, "published" if relation == "replace" else relation):
            colour, marker = _LOOKS[kind]
            styles[name] = Style(kind if variant == relation else name, colour, marker, variant == "published")
    if relation == "add-remove":
        styles |= {name: Style(name, PINK, "^") for name in _peers(table)}
    figure, panels = make_figure(2, 3, (10.0, 6.8))
    curves = _curves(table)
    for axes, name in zip(panels.ravel(), DATA, strict=True):
        here = curves[curves["data"] == name]
        for trainer, style in styles.items():
            draw_curve(axes, here[here["trainer"] == trainer], "epsilon", style)
        draw_references(axes, here)
        finish_panel(axes, TITLES[name], {epsilon: f"{epsilon:g}" for epsilon in EPSILONS}, logarithmic=True)
    for axes in panels[-1]:
        axes.set_xlabel("total epsilon of the training")
    for axes in panels[:, 0]:
        axes.set_ylabel("accuracy on held-out rows")
    add_legend(figure, panels.ravel(), 4)
    note = f" Published curves stand over the claimed epsilon: {guarantees(table)}." if relation == "replace" else ""
    path = folder / f"{NAME}-{relation}.svg"
    save(figure, f"{_how(table)} Epsilon is the total; neighbours: {RELATIONS[relation]}.{note}", path)
    return path


def _plot_budget(table: pd.DataFrame, folder: Path) -> Path:
    budget = table[table[SHARE].notna()]
    figure, panels = make_figure(1, len(BUDGET_EPSILONS), (8.6, 4.2))
    references = _curves(table)
    for axes, epsilon in zip(panels[0], BUDGET_EPSILONS, strict=True):
        here = budget[budget["epsilon"] == epsilon]
        for name in DIVIDED:
            kind, variant = name.split(", ")
            colour, marker = _LOOKS[kind]
            style = Style(name, colour, marker, variant == "published")
            draw_curve(axes, here[here["trainer"] == name], SHARE, style)
        draw_references(axes, references[references["data"] == BUDGET_DATA])
        axes.axvline(EQUAL_SHARE, color="grey", linewidth=0.8, label="the same for every query")
        ticks = {share: f"{share:g}" for share in SHARES}
        finish_panel(axes, f"{TITLES[BUDGET_DATA]}, total epsilon {epsilon:g}", ticks, logarithmic=False)
        axes.set_xlabel("part of epsilon for means and variances")
    panels[0, 0].set_ylabel("accuracy on held-out rows")
    add_legend(figure, panels.ravel(), 4)
    path = folder / f"{NAME}-budget.svg"
    note = "Labels are public; smooth, published guarantees nothing."
    save(figure, f"{_how(table)} Epsilon is the total, the rest of it is for the counts. {note}", path)
    return path


def _how(table: pd.DataFrame) -> str:
    splits = int(table["splits"].max())
    return f"Means of {splits // FOLDS} x {FOLDS}-fold cross-validation with bands of 95 % of the mean."


def make_page(table: pd.DataFrame) -> str:
    """The page, from the table alone."""
    splits = int(table["splits"].max())
    peers = _peers(table)
    sections = [
        "# Training where the data is: Vaidya et al., figure 3; Zafarani and Clifton, figures 4 to 12",
        f"Regenerated by `{COMMAND}`, PYTHON being an interpreter that has diffprivlib. Means of {splits // FOLDS} x "
        f"{FOLDS}-fold cross-validation; a standard error is in the [table]({NAME}.csv). Splits of a cross-validation "
        "overlap, so that the true errors are a little larger. Bounds and value lists are the public ones of the data "
        "sets' descriptions. Every fit has noise of its own.",
        "`global`: Laplace noise for the global sensitivity. `smooth`: Cauchy noise for the smooth sensitivity of "
        "means and variances. `sums`: noisy sums, this project's own. "
        + (f"`{peers[0]}`: its GaussianNB, on the same splits, where all features are numbers. " if peers else "")
        + "Curves of one relation compare: "
        + "; ".join(f"`{name}`: {meaning}" for name, meaning in RELATIONS.items())
        + ".",
        f"Published curves stand over the epsilon that the papers claim: {guarantees(table)}. On a table without "
        "numbers (mushroom) global and smooth are the same algorithm.",
        "Some settings of `sums` were chosen on adult, diabetes and seeds, as "
        "[told there](../trainers.md#what-helped-sums): its margins on them are optimistic.",
        *(f"![{relation}]({NAME}-{relation}.svg)" for relation in RELATIONS),
        f"![dividing epsilon]({NAME}-budget.svg)",
        "## What the papers say, and what is measured here",
        f"Quoted are the abstracts. There is a comparison for every epsilon. {HOW}",
        *(f"{number}. {claim}" for number, claim in enumerate(_claims(table), start=1)),
        "## Accuracy",
    ]
    for name in DATA:
        sections += [f"### {TITLES[name]}", _table(_curves(table), name)]
    sections += ["## Dividing epsilon", _divided(table)]
    sections += [_budget_table(table, epsilon) for epsilon in BUDGET_EPSILONS]
    return "\n\n".join(sections) + "\n"


def _claims(table: pd.DataFrame) -> list[str]:
    curves = _curves(table)
    with_numbers = [name for name in DATA if name != "mushroom"]
    none = curves.loc[curves["trainer"] == "smooth, published", "guaranteed_epsilon"].isna().all()
    kept = curves[curves["trainer"] == "smooth, replace"]
    exact = (kept["guaranteed_epsilon"] == kept["epsilon"]).all()
    majority = curves[curves["trainer"] == "majority"].drop(columns="epsilon")
    published = compare(curves[curves["trainer"] == "global, published"], majority, ["data"])
    claims = [
        '*Naive Bayes "consistently provides reasonable classification performance"* (Vaidya et al. 2013). Their '
        f"algorithm as published, against the majority class on all tables: {published}.",
        '*"The accuracy of our method has improved significantly"* over Vaidya et al. (Zafarani, Clifton 2020), on the '
        "tables with numbers:"
        + _compared(curves, "both as published", "smooth, published", "global, published", with_numbers)
        + _compared(curves, "both sound, `replace`", "smooth, replace", "global, replace", with_numbers)
        + _compared(curves, "both sound, `add-remove`", "smooth, add-remove", "global, add-remove", with_numbers),
        '*"While still preserving ε-differential privacy"* (the same). The published sensitivity '
        f"{'guarantees nothing' if none else 'guarantees an epsilon'}; the sound variant "
        f"{'guarantees the epsilon that it is drawn over' if exact else 'guarantees another epsilon than drawn'}.",
        "*Of this project: noisy sums are better than either paper's noise.*"
        + _compared(curves, "than `global`, sound, `add-remove`", "sums, add-remove", "global, add-remove", DATA)
        + _compared(curves, "than `smooth`, sound, `replace`", "sums, replace", "smooth, replace", with_numbers),
    ]
    claims += [
        f"*Of this project: noisy sums are at least as accurate as {peer} at every epsilon.*"
        + _at_least(curves, "sums, add-remove", peer)
        for peer in _peers(table)
    ]
    return claims


def _pair(curves: pd.DataFrame, first: str, second: str, name: str) -> Comparison:
    here = curves[curves["data"] == name]
    return compare(here[here["trainer"] == first], here[here["trainer"] == second], ["epsilon"])


def _compared(curves: pd.DataFrame, what: str, first: str, second: str, names: Sequence[str]) -> str:
    told = "; ".join(f"{TITLES[name]} {_pair(curves, first, second, name)}" for name in names)
    return f"\n   - {what}: {told}."


def _at_least(curves: pd.DataFrame, first: str, peer: str) -> str:
    parts = []
    for name in dict.fromkeys(curves.loc[curves["trainer"] == peer, "data"]):
        found = _pair(curves, first, peer, name)
        below = [
            f"{epsilon:g} ({difference:+.3f})"
            for epsilon, difference in zip(EPSILONS, found.differences, strict=True)
            if difference < 0
        ]
        told = f"below it at epsilon {listed(below)}" if below else f"at all {len(EPSILONS)}"
        parts.append(
            f"\n   - {TITLES[name]}: {told}, clearly lower in {found.clearly_lower}, clearly higher in "
            f"{found.clearly_higher}, mean {sum(found.differences) / len(EPSILONS):+.3f}."
        )
    return "".join(parts)


def _table(curves: pd.DataFrame, name: str) -> str:
    here = curves[curves["data"] == name]
    rows = []
    for trainer in [*TRAINERS, *_peers(here), *REFERENCES]:
        curve = here[here["trainer"] == trainer]
        if trainer in REFERENCES:
            cells = [f"{curve['accuracy'].iloc[0]:.3f}"] * len(EPSILONS)
        else:
            by_epsilon = curve.set_index("epsilon")["accuracy"]
            cells = [f"{by_epsilon[epsilon]:.3f}" for epsilon in EPSILONS]
        rows.append([trainer, *cells])
    return markdown_table(["trainer", *(f"ε = {epsilon:g}" for epsilon in EPSILONS)], rows)


def _divided(table: pd.DataFrame) -> str:
    """Which share is best, and whether it is better than the same for every query by more than noise."""
    budget, equal = table[table[SHARE].notna()], _curves(table)
    equal = equal[equal["data"] == BUDGET_DATA]
    parts = []
    for name in DIVIDED:
        for epsilon in BUDGET_EPSILONS:
            curve = budget[(budget["trainer"] == name) & (budget["epsilon"] == epsilon)]
            best = curve.loc[[curve["accuracy"].idxmax()]]
            found = compare(best, equal[equal["trainer"] == name], ["epsilon"])
            told = "clearly more than" if found.clearly_higher else "no clear gain on"
            place = f"best at {best[SHARE].iloc[0]:g} ({found.differences[0]:+.3f}, {told} equal parts)"
            parts.append(f"\n- {name}, epsilon {epsilon:g}: {place}")
    return (
        "Accuracy on adult over the part of epsilon that means and variances (sums and squares) get, labels public "
        "(Zafarani, Clifton 2020, figure 10). *Equal parts*: every query gets the same, which gives the moments "
        f"{EQUAL_SHARE:g} (as published a little less, because the classes are counted, too). The best of "
        f"{len(SHARES)} is picked on the rows it is measured on, which flatters it.\n" + "".join(parts)
    )


def _budget_table(table: pd.DataFrame, epsilon: float) -> str:
    here = table[(table["data"] == BUDGET_DATA) & (table["epsilon"] == epsilon)]
    rows = []
    for name in DIVIDED:
        mine = here[here["trainer"] == name]
        curve, equal = mine.set_index(SHARE)["accuracy"], float(_curves(mine)["accuracy"].iloc[0])
        rows.append([name, *(f"{curve[share]:.3f}" for share in SHARES), f"{equal:.3f}"])
    return markdown_table([f"adult, ε = {epsilon:g}", *(f"{share:g}" for share in SHARES), "equal parts"], rows)


FIGURE: Final = Figure(
    name=NAME,
    about="Vaidya et al., figure 3; Zafarani and Clifton, figures 4 to 12: who holds the table",
    runs=REPEATS,
    of_runs=f"times {FOLDS} folds",
    measure=measure,
    draw=draw,
    make_page=make_page,
    takes_peer=True,
    least_runs=1,
)
