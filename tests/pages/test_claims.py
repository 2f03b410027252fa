"""Claims of the pages: the words that quote a figure's table, each with the table and the expression that gives them.

A bound is rounded to its own side (:func:`at_most`, :func:`at_least`); a comparison of two curves is a verdict, as the
figure pages define it. Whoever measures a figure again reads here which words are others now.
"""

import math
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from blocks import ROOT

FIGURES = ROOT / "docs" / "figures"
HONEST, SERIES, DISCRETE, NUMERIC, CENTRAL, FEDERATED = (
    "honest-accuracy", "series", "ldp-figure-2", "ldp-figures-3-and-4", "global-and-smooth-figures",
    "federated-figures-1-to-3",
)  # fmt: skip
NAMES = {"adult-numeric": "Adult, numbers only", "spect": "SPECT"}
"""Of tables of people, where a page does not call them by their capitalised name."""
CLEARLY = 3
"""Standard errors of a difference."""


class Claim(NamedTuple):
    """What a page says: ``words`` have a ``{}`` for each text that the expression makes of the figure's table."""

    page: str
    words: str
    figure: str
    values: Callable[[pd.DataFrame], tuple[object, ...]]


def said(page: str, words: str, figure: str, *values: str) -> Claim:
    """A claim whose values are computed already."""
    return Claim(page, words, figure, lambda _: values)


@cache
def table_of(figure: str) -> pd.DataFrame:
    table = pd.read_csv(FIGURES / f"{figure}.csv")
    return table[table["numerical_share"].isna()] if figure == CENTRAL else table


@cache
def text_of(page: str) -> str:
    """A page with single spaces."""
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


def at_most(value: float, digits: int) -> str:
    return f"{math.ceil(round(value * 10**digits, 6)) / 10**digits:.{digits}f}"


def at_least(value: float, digits: int) -> str:
    return f"{math.floor(round(value * 10**digits, 6)) / 10**digits:.{digits}f}"


def short(text: str) -> str:
    """A number below 1 without the nought before its point."""
    return re.sub(r"\b0\.", ".", text)


def test_bounds_are_rounded_to_their_own_side_and_stay_where_they_are_exact():
    assert (at_most(0.4601, 2), at_least(0.4699, 2), at_most(0.46, 2), at_least(0.46, 2)) == (
        "0.47", "0.46", "0.46", "0.46",
    )  # fmt: skip
    assert (at_most(-0.0041, 3), short("-0.062")) == ("-0.004", "-.062")


# --- verdicts ---


def verdict(higher: int, lower: int) -> str:
    if higher and lower:
        return "mixed"
    return "confirmed" if higher else "contradicted" if lower else "undecided"


def compared(one: pd.DataFrame, other: pd.DataFrame) -> tuple[int, int, list[float]]:
    """In how many places the first is clearly higher and clearly lower, and all gains, over what they share."""
    keys = [name for name in ("epsilon", "inputs") if name in one]
    both = one.merge(other, on=keys, suffixes=("", "_other"))
    gains = both["accuracy"] - both["accuracy_other"]
    error = CLEARLY * np.hypot(both["standard_error"], both["standard_error_other"])
    return int((gains > error).sum()), int((gains < -error).sum()), gains.tolist()


def told(higher: int, lower: int, gains: list[float]) -> str:
    return f"{verdict(higher, lower)}, {higher}, {lower}, {np.mean(gains):+.3f}"


def curve(data: str, trainer: str) -> pd.DataFrame:
    table = table_of(CENTRAL)
    return table[(table["data"] == data) & (table["trainer"] == trainer)]


def against(data: str, one: str, other: str) -> str:
    return told(*compared(curve(data, one), curve(data, other)))


def name_of(data: str) -> str:
    return NAMES.get(data, data.capitalize())


CENTRAL_PAGE = f"docs/figures/{CENTRAL}.md"
FEDERATED_PAGE = f"docs/figures/{FEDERATED}.md"
NUMERIC_PAGE = f"docs/figures/{NUMERIC}.md"
PEER = "diffprivlib 0.6.5"
WITH_NUMBERS = ("adult", "skin", "seeds", "adult-numeric", "diabetes")


def central_claims() -> Iterator[Claim]:
    for data in WITH_NUMBERS:
        kinds = ("published", "replace", "add-remove")
        cells = [against(data, f"smooth, {kind}", f"global, {kind}") for kind in kinds]
        yield said(CENTRAL_PAGE, f"| {name_of(data)} | {{}} | {{}} | {{}} |", CENTRAL, *cells)
    for data in (*WITH_NUMBERS, "mushroom"):
        cells = [against(data, f"sums, {kind}", f"{other}, {kind}")
                 for other, kind in (("global", "add-remove"), ("smooth", "replace"))]  # fmt: skip
        yield said(CENTRAL_PAGE, f"| {name_of(data)} | {{}} | {{}} |", CENTRAL, *cells)
    for data in WITH_NUMBERS[1:]:
        higher, lower, gains = compared(curve(data, "sums, add-remove"), curve(data, PEER))
        places = zip(curve(data, PEER)["epsilon"], gains, strict=True)
        below = ", ".join(f"{epsilon:g} ({gain:+.3f})" for epsilon, gain in places if gain < 0)
        row = f"{told(higher, lower, gains)} | {below}".strip()
        yield said(CENTRAL_PAGE, f"| {name_of(data)} | {{}} |", CENTRAL, row)


def against_the_majority(table: pd.DataFrame) -> tuple[str]:
    found = []
    for data in table["data"].unique():
        published = curve(data, "global, published")
        majority = pd.concat([curve(data, "majority").assign(epsilon=one) for one in published["epsilon"]])
        found.append(compared(published, majority))
    higher, lower = (sum(one[place] for one in found) for place in (0, 1))
    gains = [gain for one in found for gain in one[2]]
    return (f"{verdict(higher, lower)}, {higher} higher, {lower} lower of {len(gains)}, mean {np.mean(gains):+.3f}",)


def guaranteed_by_the_published(table: pd.DataFrame) -> tuple[str, str]:
    here = table[table["trainer"] == "global, published"]
    times = here["guaranteed_epsilon"] / here["epsilon"]
    return at_least(times.min(), 2), at_most(times.max(), 2)


def best_of_those_that_hold_tables(table: pd.DataFrame) -> tuple[object, ...]:
    kinds = [f"{one}, add-remove" for one in ("global", "smooth", "sums")]
    wide = table[table["trainer"].isin(kinds)].pivot(index=["data", "epsilon"], columns="trainer", values="accuracy")
    assert (wide.idxmax(axis=1) == "sums, add-remove").mean() > 0.5
    return ()


def small_tables(table: pd.DataFrame) -> tuple[str, ...]:
    private = table[(table["epsilon"] <= 0.1)].groupby("data")["accuracy"].max()
    majority = table[table["trainer"] == "majority"].set_index("data")["accuracy"]
    return tuple(
        text
        for data in ("diabetes", "seeds")
        for text in (short(at_most(private[data], 2)), short(f"{majority[data]:.3f}"))
    )


def best_share(trainer: str, epsilon: float) -> str:
    table = pd.read_csv(FIGURES / f"{CENTRAL}.csv")
    here = table[(table["trainer"] == trainer) & (table["epsilon"] == epsilon) & (table["data"] == "adult")]
    even, divided = here[here["numerical_share"].isna()].iloc[0], here[here["numerical_share"].notna()]
    best = divided.loc[divided["accuracy"].idxmax()]
    gain = best["accuracy"] - even["accuracy"]
    assert gain <= CLEARLY * math.hypot(best["standard_error"], even["standard_error"]), "a clear gain"
    return f"{best['numerical_share']:g}, {gain:+.3f}"


def federated_cells(data: str, variant: str) -> tuple[str, str]:
    """Claim 1, that ten times the epsilon is enough, and claim 2, that many nodes are better than one."""
    table = table_of(FEDERATED)
    here = table[(table["data"] == data) & (table["trainer"] == variant)]
    if here.empty:
        return "", ""
    one, found, enough = here[here["nodes"] == 1], [], []
    for nodes in (10, 100, 1000):
        many = here[here["nodes"] == nodes]
        found.append(compared(many, one))
        alone, all_of_them = one.set_index("epsilon")["accuracy"], many.set_index("epsilon")["accuracy"]
        enough += [all_of_them[10 * epsilon] >= alone[epsilon] - 0.01 - 1e-9 for epsilon in (0.01, 0.1, 1.0)]
    part = np.mean(enough)
    first = "confirmed" if part > 0.8 else "contradicted" if part < 0.5 else "mixed"
    higher, lower = (sum(one[place] for one in found) for place in (0, 1))
    return f"{first}, {sum(enough)} of {len(enough)}", told(higher, lower, [gain for one in found for gain in one[2]])


def federated_claims() -> Iterator[Claim]:
    for data in ("adult", "mushroom", "skin", "accelerometer", "spect"):
        (first, second), (third, fourth) = (federated_cells(data, variant) for variant in ("sound", "published"))
        row = " | ".join((first, third, second, fourth)).replace("|  |", "| |").strip()
        yield said(FEDERATED_PAGE, f"| {name_of(data)} | {{}} |", FEDERATED, row)


# --- figures of the LDP paper ---


def discrete_row(dataset: str, *, per_question: bool) -> tuple[str, ...]:
    table = table_of(DISCRETE)
    here = table[(table["dataset"] == dataset) & (table["choice"] == "as drawn") & (table["epsilon"] == 0.5)]
    here = here[here["per_question"] == per_question].set_index("mechanism")["accuracy"]
    return tuple(f"{here[name]:.3f}" for name in ("de", "sue", "oue", "she", "the"))


def worst_is_she(table: pd.DataFrame) -> tuple[object, ...]:
    here = table[(table["choice"] == "as drawn") & (table["epsilon"] == 0.5) & table["per_question"]]
    worst = here.loc[here.groupby("dataset")["accuracy"].idxmin()].set_index("dataset")["mechanism"]
    names = {"car": "Car", "chess_krvkp": "Chess", "mushroom": "Mushroom", "connect4": "Connect-4"}
    where = [name for dataset, name in names.items() if worst[dataset] == "she"]
    return len(where), len(names), ", ".join(where)


def choice_rows() -> Iterator[Claim]:
    table = table_of(DISCRETE)
    here = table[(table["dataset"] == "mushroom") & (table["epsilon"] == 0.5)]
    for (choice, per_question), group in here.groupby(["choice", "per_question"]):
        of = group.set_index("mechanism")
        gains = of["accuracy"] - of.loc["she", "accuracy"]
        error = CLEARLY * np.hypot(of["standard_error"], of.loc["she", "standard_error"])
        means = " | ".join(f"{of.loc[name, 'accuracy']:.3f}" for name in ("de", "sue", "oue", "she", "the"))
        accounting = "per question" if per_question else "total"
        row = f"| {choice}, {accounting} | {means} | {(gains > error).sum()} |"
        yield said(f"docs/figures/{DISCRETE}.md", "{}", DISCRETE, row)


def counted(gains: list[float]) -> str:
    """The verdict of comparisons of means, whatever their standard errors."""
    part = np.mean([gain > 0 for gain in gains])
    word = "confirmed" if part > 0.8 else "contradicted" if part < 0.5 else "mixed"
    return f"{word}, {sum(gain > 0 for gain in gains)} of {len(gains)}, {np.mean(gains):+.3f}"


def numeric_cells(dataset: str, accounting: str) -> tuple[str, ...]:
    table = table_of(NUMERIC)
    here = table[(table["dataset"] == dataset) & (table["accounting"] == accounting)]
    wide = here.pivot(index=["method", "epsilon"], columns="inputs", values="accuracy")
    projected = counted((wide["dca"] - wide["raw"]).tolist())
    small = here[(here["epsilon"] <= 1) & (here["method"] != "Gaussian, sign")]  # Of the paper's methods.
    means = small.groupby(["inputs", "epsilon", small["method"].str.startswith("bins")])["accuracy"].mean().unstack()
    cells = [projected, counted((means[True] - means[False]).tolist())]
    if accounting == "total":
        first = here[here["method"] == "Gaussian, approach 1"].set_index(["inputs", "epsilon"])["accuracy"]
        for others in (
            here[here["method"] != "Gaussian, approach 1"],
            here[here["method"].isin(["Gaussian, approach 2", "Gaussian, approach 3"])],
        ):
            means = others.groupby(["inputs", "epsilon"])["accuracy"].mean()
            cells.append(counted((means - first.reindex(means.index)).tolist()))
    return tuple(cells)


def numeric_claims() -> Iterator[Claim]:
    for accounting in ("per question", "total"):
        for row in zip(*(numeric_cells(name, accounting) for name in ("australian", "diabetes")), strict=True):
            yield said(NUMERIC_PAGE, f"{accounting} | {{}} | {{}} |", NUMERIC, *row)


# --- honest accuracy ---


def default_of(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["variant"] == "default"]


def below_the_majority(table: pd.DataFrame) -> tuple[object, ...]:
    default = default_of(table)
    below = default[default["accuracy"] - default["majority"] < -2 * default["standard_error"]]
    return len(below), len(default), below["dataset"].nunique(), default["dataset"].nunique()


def below_the_base(table: pd.DataFrame) -> tuple[object, ...]:
    default = default_of(table)
    return (int(((default["above_base"] < -0.01) & (default["above_base"] < -2 * default["above_base_error"])).sum()),)


def naive_bayes_below_the_majority(table: pd.DataFrame) -> tuple[str, ...]:
    each = table.drop_duplicates("dataset").set_index("dataset")
    names = ["framingham", "telco_churn", "travel_claims"]
    below = each.index[each["non_private"] < each["majority"]]
    assert set(names) <= set(below)
    return tuple(
        short(f"{each.loc[name, column] + 1e-9:.3f}") for column in ("non_private", "majority") for name in names
    )


def at_epsilon_one(table: pd.DataFrame) -> pd.DataFrame:
    default = default_of(table)
    return default[default["epsilon"] == 1]


def per_cent(value: float) -> str:
    return f"{100 * value:.0f}"


def cost_of_evaluating(table: pd.DataFrame) -> tuple[str, ...]:
    """Up to 20,000 devices the most that it costs, and the most that it gains beyond."""
    wide = table.pivot(index=["dataset", "epsilon", "devices"], columns="variant", values="accuracy")
    means = (wide["default"] - wide["evaluated"]).groupby(["epsilon", "devices"]).mean()
    return short(at_most(means.max(), 3)), short(at_least(-means.min(), 3))


# --- series ---


def memoised(windows: int, *epsilons: float) -> tuple[float, ...]:
    table = table_of(SERIES)
    here = table[(table["way"] == "memoised") & (table["windows"] == windows)]
    return tuple(here[here["epsilon"] == epsilon]["loss"].min() for epsilon in epsilons)


def least_covered(table: pd.DataFrame, way: str) -> str:
    return at_least(table[table["way"] == f"by lot, {way}"]["covered in %"].min(), 1)


def errors_of(table: pd.DataFrame) -> pd.DataFrame:
    return table.pivot(index=["population", "windows", "epsilon"], columns="way", values="error in %")


def most_that_it_costs(table: pd.DataFrame, way: str) -> str:
    errors = errors_of(table)
    more = 100 * (errors[f"by lot, {way}"] / errors["by lot"] - 1)
    assert more.idxmax()[:2] == ("jump", 4)
    return at_most(more.max(), 1)


def smoothed_is_best(table: pd.DataFrame) -> tuple[object, ...]:
    errors = errors_of(table)
    others = errors[["split evenly", "split evenly, smoothed", "memoised"]].min(axis=1)
    assert (errors["by lot, smoothed"] < others).all()
    at_52 = errors.xs(52, level="windows")
    assert (at_52["memoised"] < at_52["by lot"]).all()
    return ()


def split_covered(table: pd.DataFrame) -> tuple[str, str]:
    here = table[(table["way"] == "split evenly, smoothed") & (table["population"] == "seasons")]
    here = here[(here["epsilon"] == 1) & (here["windows"] >= 26)]["covered in %"]
    return at_least(here.min(), 0), at_most(here.max(), 0)


SERIES_PAGE, ACCURACY_PAGE = f"docs/figures/{SERIES}.md", "docs/accuracy.md"
DEVICES = (1_000, 5_000, 20_000, 80_000, 320_000)

CLAIMS = [
    Claim("README.md", "Always guessing the most frequent class: {} %; without privacy: {} %", HONEST,
          lambda t: tuple(per_cent(t.drop_duplicates("dataset")[name].mean()) for name in ("majority", "non_private"))),
    Claim("README.md", f"| devices | {' | '.join(f'{n:,}' for n in DEVICES)} |", HONEST,
          lambda t: () if (*sorted(t["devices"].unique()),) == DEVICES and t["dataset"].nunique() == 17 else ("",)),
    Claim("README.md", "| accuracy | {} % | {} % | {} % | {} % | {} % |", HONEST,
          lambda t: tuple(per_cent(one) for one in at_epsilon_one(t).groupby("devices")["accuracy"].mean())),
    Claim(ACCURACY_PAGE, "always saying the most frequent class**: {} of {}, on {} of {} tables", HONEST,
          below_the_majority),
    Claim(ACCURACY_PAGE, "It also lists the {} in which it is clearly", HONEST, below_the_base),
    Claim(ACCURACY_PAGE, "even without noise ({}, {} and {} for {}, {} and {})", HONEST,
          naive_bayes_below_the_majority),
    Claim(ACCURACY_PAGE, "(SPECT). The noisy zeros of the nearest probabilities suit this table: the default is better "
          "in {} of 15 settings", HONEST,
          lambda t: ((default_of(t).loc[default_of(t)["dataset"] == "spect", "above_base"] > 0).sum(),)),
    Claim(ACCURACY_PAGE, "(Seeds, {} at epsilon .5 with 5,000 devices)", HONEST,
          lambda t: (short(f"{default_of(t).set_index(['dataset', 'epsilon', 'devices'])['above_base'].min():.3f}"),)),
    Claim("docs/evaluation.md", "costs at most {} of mean accuracy, and gains up to {}", HONEST, cost_of_evaluating),
    Claim("docs/trainers.md", "no trainer is above {} on diabetes (most frequent class: {}) or {} on seeds ({})",
          CENTRAL, small_tables),
    Claim("docs/how-to/central.md", "is the most accurate here at most epsilons", CENTRAL,
          best_of_those_that_hold_tables),
    Claim(CENTRAL_PAGE, "all tables: {}", CENTRAL, against_the_majority),
    Claim(CENTRAL_PAGE, "guarantees {} to {} times that epsilon", CENTRAL, guaranteed_by_the_published),
    Claim("docs/reference/papers.md", "at {} to {} times epsilon", CENTRAL, guaranteed_by_the_published),
    *(Claim(CENTRAL_PAGE, f"| {trainer} | {{}} | {{}} |", CENTRAL,
            lambda _, trainer=trainer: tuple(best_share(trainer, epsilon) for epsilon in (0.1, 1.0)))
      for trainer in ("global, replace", "smooth, published", "smooth, replace", "sums, replace")),
    *central_claims(),
    *federated_claims(),
    *(Claim(f"docs/figures/{DISCRETE}.md", f"{accounting} | {{}} | {{}} | {{}} | {{}} | {{}} |", DISCRETE,
            lambda _, name=name, accounting=accounting: discrete_row(name, per_question=accounting != "total"))
      for name in ("mushroom", "connect4") for accounting in ("per question", "total")),
    Claim(f"docs/figures/{DISCRETE}.md", "the most frequent class has {} |", DISCRETE,
          lambda t: (f"{t[t['dataset'] == 'connect4']['majority'].mean():.3f}",)),
    Claim(f"docs/figures/{DISCRETE}.md", "it is on {} of {} data sets: {}.", DISCRETE, worst_is_she),
    *choice_rows(),
    Claim("docs/reference/papers.md", "With epsilon in total: {} to {}.", DISCRETE,
          lambda _: tuple(f"{float(pick(discrete_row('mushroom', per_question=False))):.2f}" for pick in (min, max))),
    *numeric_claims(),
    Claim(SERIES_PAGE, "at least {} for a claim of 1 after 52 windows", SERIES,
          lambda _: tuple(at_least(one, 0) for one in memoised(52, 1.0))),
    Claim(SERIES_PAGE, "With four windows they lose at least {}, {} and {} for claims of 1, 2 and 4", SERIES,
          lambda _: tuple(at_least(one, 2) for one in memoised(4, 1.0, 2.0, 4.0))),
    Claim(SERIES_PAGE, "have smaller errors than split (also smoothed) and memoised answers in all of these settings",
          SERIES, smoothed_is_best),
    Claim(SERIES_PAGE, "hold in {} % or more of each population (smoothed), {} % or more (filtered)", SERIES,
          lambda t: tuple(least_covered(t, way) for way in ("smoothed", "filtered"))),
    Claim(SERIES_PAGE, "raises the error by up to {} % and smoothing by up to {} % (both in `jump`)", SERIES,
          lambda t: tuple(most_that_it_costs(t, way) for way in ("filtered", "smoothed"))),
    Claim(SERIES_PAGE, "their intervals hold in {} to {} %", SERIES, split_covered),
]  # fmt: skip


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.page}: {claim.words[:40]}")
def test_a_page_says_what_the_table_of_its_figure_says(claim):
    words = claim.words.format(*claim.values(table_of(claim.figure)))
    assert words in text_of(claim.page)


def test_every_verdict_of_a_figure_page_is_among_the_claims():
    """A cell of a verdict with its numbers; none is left that no table holds."""
    for page in (CENTRAL_PAGE, FEDERATED_PAGE, NUMERIC_PAGE):
        cell = re.compile(r"(?:confirmed|mixed|contradicted|undecided), \d+(?:, \d+| of \d+)[^|]*")
        found = [one.strip() for one in cell.findall(text_of(page).replace("all tables: ", "| "))]
        held = [
            text
            for claim in CLAIMS
            if claim.page == page
            for text in cell.findall(claim.words.format(*claim.values(table_of(claim.figure))))
        ]
        assert len(found) > 10
        assert sorted(found) == sorted(one.strip() for one in held if "higher" not in one)


@pytest.mark.parametrize("name", [HONEST, SERIES, DISCRETE, NUMERIC, CENTRAL, FEDERATED])
def test_a_figure_page_says_by_which_command_when_and_with_which_version_it_was_measured(name):
    page = f"docs/figures/{name}.md"
    assert re.search(
        rf"Measured by `ldp-simulate reproduce {name}[^`]*` on \d+ \w+ 20\d\d with version \d+\.\d+\.\d+", text_of(page)
    )
