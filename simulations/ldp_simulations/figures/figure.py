"""A figure: an experiment that gives one table, and the plots and tables that are drawn from that table alone."""

from __future__ import annotations

import ast
import hashlib
import inspect
import io
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pandas as pd

from ldp_aggregator.trainers.reading import TableError
from ldp_simulations.figures.overview import Overview
from ldp_simulations.studies.trials import Journal, Trial, experiment_id, run_trials
from ldp_simulations.tables import Table

DECIMALS: Final = 4
"""Decimals of the accuracies in a table; plots and page show these, so that they can be made again from it."""
TABLES: Final = "<!-- tables: `reproduce` writes what follows -->"
"""The line of a page below which the tables are written; what is above it was written by a person, and stays."""
REFERENCES: Final[Mapping[str, tuple[str, ...]]] = {
    "without privacy": ("non-private", "non-private Gaussian"),
    "majority class": ("majority",),
}
"""A line across a panel, and its name in the tables."""

Z_95: Final = 1.96
_COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Okabe and Ito's colours, which colour-blind people tell apart."""
_MARKERS: Final = "osD^vPX"
_PANEL_INCHES: Final = 3.3
_CAPTION_LETTERS: Final = 14
"""Letters of a caption on an inch of the figure's width."""


@dataclass(frozen=True)
class Execution:
    """The way in which an experiment is run. ``peer`` is an interpreter with diffprivlib; ``only`` one table of people,
    and ``epsilon`` one of the figure's, are measured where they are named.
    """

    runs: int
    journal: Path | None = None
    workers: int | None = None
    peer: str | None = None
    only: str | None = None
    epsilon: float | None = None

    @property
    def partial(self) -> bool:
        """True where not the whole figure is measured."""
        return not (self.only is None and self.epsilon is None)

    def tables(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of the figure's tables of people that are measured."""
        return tuple(name for name in names if self.only in (None, name))

    def epsilons(self, epsilons: Iterable[float]) -> tuple[float, ...]:
        """Those of the figure's epsilons that are measured."""
        return tuple(epsilon for epsilon in epsilons if self.epsilon in (None, epsilon))

    def trials(
        self, trial: Trial, count: int, people: Table, *described: Any, description: str
    ) -> list[dict[str, Any]]:
        """Rows of ``count`` trials, those in the journal not run again; ``described`` (JSON) names the experiment."""
        journal = Journal(self.journal, experiment_id(people, *described))
        return run_trials(trial, range(count), journal, workers=self.workers, description=description)


@dataclass(frozen=True)
class Plot:
    """A plot of accuracies, or of another column ``y``: a panel for each value of the columns ``panels``, in it a curve
    for each of ``curves``.

    ``select`` takes the rows from the figure's table. Rows without an ``x`` are references: lines across the panels
    whose values they have. The page has a table for each value of the first ``headings`` of the panels' columns.
    """

    name: str
    caption: str
    panels: tuple[str, ...]
    curves: tuple[str, ...]
    x: str = "epsilon"
    y: str = "accuracy"
    y_label: str = "accuracy on people held out"
    headings: int = 1
    columns: int = 3
    select: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table

    def draw(self, table: pd.DataFrame, path: Path) -> None:
        """Draw means with bands of 95 %. Raises TableError where the file cannot be written."""
        from matplotlib.figure import Figure  # Here, because it is slow to load.

        table = self.select(table)
        groups = self._groups(table, self.panels)
        rows = -(-len(groups) // self.columns)
        figure = Figure(figsize=(_PANEL_INCHES * self.columns, _PANEL_INCHES * rows), layout="constrained")
        axes = figure.subplots(rows, self.columns, squeeze=False)
        labels = list(dict.fromkeys(_names(self._points(table), self.curves)))
        for panel in axes.ravel()[len(groups) :]:
            panel.axis("off")
        for panel, (place, here) in zip(axes.ravel(), groups, strict=False):
            for (name, value), look in zip(self._references(table, place).items(), ("--", ":"), strict=False):
                panel.axhline(value, color="grey", linewidth=1, linestyle=look, label=name)
            for label, curve in here.groupby(_names(here, self.curves), sort=False):
                self._draw_curve(panel, curve, str(label), labels.index(str(label)))
            panel.set_title(self._title(place), fontsize=10)
            x_scale, y_scale = (
                "log" if here[name].max() > 10 * here[name].min() else "linear" for name in (self.x, self.y)
            )
            panel.set(xscale=x_scale, yscale=y_scale, xlabel=self.x.replace("_", " "), ylabel=self.y_label)
            ticks = sorted(set(here[self.x]))
            panel.set_xticks(ticks, [_text(tick) for tick in ticks])
            panel.minorticks_off()
            panel.spines[["top", "right"]].set_visible(False)
        keys = (zip(*panel.get_legend_handles_labels(), strict=True) for panel in axes.ravel())
        entries = {label: handle for panel in keys for handle, label in panel}
        figure.legend(entries.values(), entries, loc="outside upper center", ncols=4, frameon=False, fontsize=9)
        _save(figure, self.caption, path)

    def tables(self, table: pd.DataFrame) -> Iterator[str]:
        """The accuracies as Markdown: a row for each curve, a column for each ``x``."""
        table = self.select(table)
        for place, here in self._groups(table, self.panels[: self.headings]):
            names = _names(here, (*self.panels[self.headings :], *self.curves))
            wide = here.assign(curve=names).pivot(index="curve", columns=self.x, values=self.y)
            rows = {name: [f"{value:.3f}" for value in wide.loc[name]] for name in dict.fromkeys(names)}
            for name, value in self._references(table, place).items():
                rows[name] = [f"{value:.3f}"] * len(wide.columns)
            heads = [self.y, *(f"{self.x} {_text(value)}" for value in wide.columns)]
            lines = [heads, ["---", *["---:"] * len(wide.columns)], *([name, *cells] for name, cells in rows.items())]
            yield f"### {self._title(place)}"
            yield "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def _groups(self, table: pd.DataFrame, columns: Sequence[str]) -> list[tuple[tuple[object, ...], pd.DataFrame]]:
        """The points by the values of some columns, each column's in the order of their first appearance."""
        points = self._points(table)
        orders = [list(dict.fromkeys(points[name])) for name in columns]
        groups = [(tuple(place), here) for place, here in points.groupby(list(columns), sort=False)]
        return sorted(groups, key=lambda group: [order.index(v) for order, v in zip(orders, group[0], strict=True)])

    def _title(self, place: Sequence[object]) -> str:
        named = zip(self.panels, place, strict=False)
        return ", ".join(value if isinstance(value, str) else f"{name} {_text(value)}" for name, value in named)

    def _points(self, table: pd.DataFrame) -> pd.DataFrame:
        return table[table[self.x] > 0]

    def _references(self, table: pd.DataFrame, place: Sequence[object]) -> dict[str, float]:
        """The references of the panels at a place: means of columns of their own, or rows without an x."""
        of = dict(zip(self.panels, place, strict=False))
        if "majority" in table:
            here = table[(table[list(of)] == pd.Series(of)).all(axis=1)]
            return {"without privacy": here["non_private"].mean(), "majority class": here["majority"].mean()}
        rows = table[~(table[self.x] > 0)]
        for name, value in of.items():
            rows = rows[(rows[name] == value) | rows[name].isna()]
        named = rows.set_index(self.curves[0])[self.y]
        return {
            name: float(named[called].mean())
            for name, all_calls in REFERENCES.items()
            for called in all_calls
            if called in named
        }

    def _draw_curve(self, panel: Any, curve: pd.DataFrame, label: str, place: int) -> None:
        curve = curve.sort_values(self.x)
        colour, margin = _COLOURS[place % len(_COLOURS)], Z_95 * curve["standard_error"]
        look = {"marker": _MARKERS[place % len(_MARKERS)], "markersize": 4, "linewidth": 1.4}
        panel.plot(curve[self.x], curve[self.y], color=colour, label=label, **look)
        band = (curve[self.y] - margin, curve[self.y] + margin)
        panel.fill_between(curve[self.x], *band, color=colour, alpha=0.15, linewidth=0)


@dataclass(frozen=True)
class Figure:
    """``measure`` runs the experiment; ``plots`` are drawn from its table alone.

    ``about`` says in a line what is drawn, ``runs`` how often it is run unless told otherwise, and ``of_runs`` of what.
    """

    name: str
    about: str
    runs: int
    of_runs: str
    measure: Callable[[Execution], pd.DataFrame]
    plots: tuple[Plot, ...]
    people: tuple[str, ...] = ()
    """Keys that an execution may take alone: the values of the first column of the table."""
    epsilons: tuple[float, ...] = ()
    takes_peer: bool = False
    least_runs: int = 2
    """Fewer have no standard error."""
    summary: Callable[[pd.DataFrame], str] | None = None
    """Words and numbers about the table, on the page before its accuracies."""
    overviews: tuple[Overview, ...] = ()
    """Pictures beside the plots, for other pages than the figure's own."""
    measured_of: tuple[ModuleType, ...] = ()
    """The code whose changes make the figure another one: what it was measured of is kept beside it."""

    def table(self, folder: Path) -> Path:
        """The path of the table in a folder of figures."""
        return folder / f"{self.name}.csv"

    def run(self, execution: Execution, folder: Path) -> list[Path]:
        """Measure, keep the table, and make plots and page from it; all paths."""
        self._check(execution)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TableError(f"{folder}: cannot be made a folder ({error.strerror})") from None
        self.measure(execution).round(DECIMALS).to_csv(self.table(folder), index=False)
        if self.measured_of:
            self.code(folder).write_text(f"{self.fingerprint()}\n", encoding="ascii")
        return self.redraw(folder)

    def part(self, execution: Execution, folder: Path) -> pd.DataFrame:
        """The part of the table that the execution names, measured anew, with what the table in the folder has in its
        place as ``in_the_table``, where there is one.
        """
        self._check(execution)
        found = self.measure(execution).round(DECIMALS).reset_index(drop=True)
        y = self.plots[0].y
        try:
            stored = self.read(folder)
        except TableError:
            return found
        first = stored.columns[0]
        here = stored[first].isin(execution.tables(self.people))
        if execution.epsilon is not None:
            here &= (stored["epsilon"] == execution.epsilon) | ~(stored["epsilon"] > 0)
        keys = list(stored.loc[:, :y].select_dtypes(exclude="number"))
        stored = stored[here].reset_index(drop=True)
        named = [table[keys].fillna("").astype(str).to_numpy().tolist() for table in (stored, found)]
        if named[0] != named[1]:
            return found
        found.insert(list(found.columns).index("standard_error") + 1, "in_the_table", stored[y])
        return found

    def _check(self, execution: Execution) -> None:
        """Refuse what the figure cannot do before anything is measured. Raises TableError."""
        if execution.peer and not self.takes_peer:
            raise TableError(f"{self.name}: no trainer of diffprivlib takes part; leave --peer out")
        if execution.runs < self.least_runs:
            raise TableError(f"{self.name}: standard errors take --runs {self.least_runs} or more")
        if execution.only is not None and not execution.tables(self.people):
            raise TableError(f"{self.name}: --only takes one of {', '.join(self.people)}, not {execution.only}")
        if execution.epsilon is not None and not execution.epsilons(self.epsilons):
            choices = ", ".join(f"{epsilon:g}" for epsilon in self.epsilons)
            raise TableError(f"{self.name}: --epsilon takes one of {choices}, not {execution.epsilon:g}")

    def code(self, folder: Path) -> Path:
        """The path of the measured code's fingerprint in a folder of figures."""
        return folder / f"{self.name}.code"

    def fingerprint(self) -> str:
        """The SHA-256 of what the code is now, without comments, docstrings and lines' places."""
        return hashlib.sha256("\n".join(map(_code_of, self.measured_of)).encode()).hexdigest()

    def redraw(self, folder: Path) -> list[Path]:
        """Make the plots and the page's tables again from the table in the folder; all paths."""
        table, page = self.read(folder), folder / f"{self.name}.md"
        pictures = [folder / f"{self.name}{plot.name}.svg" for plot in self.plots]
        for plot, picture in zip(self.plots, pictures, strict=True):
            plot.draw(table, picture)
        others = [folder / f"{self.name}{one.name}.svg" for one in self.overviews]
        for overview, picture in zip(self.overviews, others, strict=True):
            overview.draw(table, picture)
        images = "\n\n".join(f"![{plot.caption}]({one.name})" for plot, one in zip(self.plots, pictures, strict=True))
        written = page.read_text(encoding="utf-8") if page.exists() else f"# {self.about}\n\n{images}\n\n{TABLES}"
        page.write_text(f"{written.partition(TABLES)[0]}{TABLES}\n\n{self.tables(table)}\n", encoding="utf-8")
        return [self.table(folder), *pictures, *others, page]

    def tables(self, table: pd.DataFrame) -> str:
        """The part of the page below :data:`TABLES`."""
        several, said = len(self.plots) > 1, [] if self.summary is None else [self.summary(table)]
        return "\n\n".join(
            [*said, *(text for plot in self.plots for text in ([plot.caption] * several + list(plot.tables(table))))]
        )

    def read(self, folder: Path) -> pd.DataFrame:
        """The table as it was measured. Raises TableError where there is none."""
        try:
            return pd.read_csv(self.table(folder), index_col=False, keep_default_na=False, na_values=[""])
        except OSError as error:
            raise TableError(f"{self.table(folder)}: cannot be read ({error.strerror})") from None


def mean_accuracies(rows: pd.DataFrame, keys: list[str], number: str) -> pd.DataFrame:
    """Means and standard errors over the trials, and their ``number``, in the order of the experiment."""
    grouped = rows.groupby(keys, sort=False, dropna=False)["accuracy"]
    summary = pd.DataFrame({"accuracy": grouped.mean(), "standard_error": grouped.sem(), number: grouped.size()})
    return summary.reset_index()


def _code_of(module: ModuleType) -> str:
    tree = ast.parse(inspect.getsource(module))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            node.body = [one for one in node.body if not _is_text(one)]
    return ast.unparse(tree)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _names(table: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """The names of the rows: the values of some columns."""
    return [", ".join(map(_text, values)) for values in zip(*(table[name] for name in columns), strict=True)]


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)


def _save(figure: Any, caption: str, path: Path) -> None:
    """Write a figure as SVG with its caption below; the same figure gives the same bytes. Raises TableError."""
    from matplotlib import rc_context

    letters = int(_CAPTION_LETTERS * figure.get_figwidth())
    figure.supxlabel("\n".join(textwrap.wrap(caption, letters)), fontsize=8)
    drawn = io.StringIO()
    try:
        with rc_context({"svg.hashsalt": "ldp-bayes", "svg.fonttype": "none"}):
            figure.savefig(drawn, format="svg", metadata={"Date": None})
        path.write_text(_shorter(drawn.getvalue()), encoding="utf-8")
    except (OSError, ValueError) as error:
        raise TableError(f"{path}: the plot cannot be written ({error})") from None


def _shorter(svg: str) -> str:
    """The same picture in fewer bytes: coordinates with two decimals, and no indents, comments, names that nothing
    refers to, or groups of one element that say nothing of it.
    """
    used = set(re.findall(r"#([\w.]+)", svg))
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r"\n\s*", "\n", svg)
    svg = re.sub(r' id="([\w.]+)"', lambda found: found[0] if found[1] in used else "", svg)
    svg = re.sub(r"\d+\.\d{3,}(?=[^<>]*>)", lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), svg)
    svg = re.sub(r"'DejaVu Sans'[^;\"]*", "'DejaVu Sans', Verdana, sans-serif", svg)
    svg = re.sub(r' transform="rotate\(-0 [^"]*"', "", svg)
    count = 1
    while count:
        svg, count = re.subn(r"<g>\n((?:(?!</?g\b).*\n)*?)</g>\n", r"\1", svg)
    return svg
