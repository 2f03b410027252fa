"""Tables that are known, with public bounds: the benchmarks beside a checkout, and the demonstration's.

The benchmarks' drafts come from ``datasets.json`` here, their people from the files that it names, in the folder
``LDP_BAYES_DATA`` or ``../shared/data`` seen from the checkout. The files are not part of the project.

The demonstration asks: is a lump malignant? Ten measurements of cell nuclei, Wisconsin diagnostic data. scikit-learn
ships the table (569 people; Street, Wolberg, Mangasarian 1993), so nothing is downloaded.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd
from sklearn.datasets import load_breast_cancer

from ldp_aggregator.service.drafts import compile_draft
from ldp_aggregator.trainers.reading import TableError, read_csv
from ldp_protocols.features import describe_number, describe_values
from ldp_simulations.tables import Source, Table, typed

FOLDER_VARIABLE: Final = "LDP_BAYES_DATA"
CLASS: Final = "class"
DATASETS: Final[dict[str, Any]] = json.loads(Path(__file__).with_name("datasets.json").read_text(encoding="utf-8"))
"""Every data set by its name: title, source, terms, files with their SHA-256 (as they are, and unpacked), classes,
and its columns in order. ``values`` and ``domain`` are public; ``observed_values`` are those that occur, where some do
not."""

ORDERED: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "car": {
        "buying": ("low", "med", "high", "vhigh"),
        "maint": ("low", "med", "high", "vhigh"),
        "doors": ("2", "3", "4", "5more"),
        "persons": ("2", "4", "more"),
        "lug_boot": ("small", "med", "big"),
        "safety": ("low", "med", "high"),
    },
    "mushroom": {"ring-number": ("n", "o", "t")},
}
"""The columns whose values the documentation of the table orders, by data set: prices, numbers of doors and
persons, sizes, and of rings (none, one, two). A draft calls a feature ordered where it lists its values so, from either
end; Adult's ``education``, which ``education-num`` orders, is listed in no order.
"""


def uci_folder() -> Path:
    """The folder of the tables. Raises TableError, saying what would be right, where there is none."""
    configured = os.environ.get(FOLDER_VARIABLE)
    folder = Path(configured) if configured else Path(__file__).resolve().parents[3] / "shared" / "data"
    if not folder.is_dir():
        raise TableError(f"{folder}: no such folder; set {FOLDER_VARIABLE} to that of the tables")
    return folder


def files_of(*names: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each file of these data sets, or of all, behind its data set's name."""
    for name in names or DATASETS:
        for file in description_of(name)["files"]:
            yield name, file


def description_of(name: str) -> Mapping[str, Any]:
    """The entry of a data set in ``datasets.json``. Raises TableError for one that it does not have."""
    if name not in DATASETS:
        raise TableError(f"{name}: not one of the data sets {', '.join(sorted(DATASETS))}")
    found: Mapping[str, Any] = DATASETS[name]
    return found


def people_of(name: str, draft: Mapping[str, Any]) -> Table:
    """The rows of all files of a data set, typed as the draft says. Raises TableError where one is missing."""
    folder, parts = uci_folder(), []
    for _, file in files_of(name):
        path = folder / file["file"]
        if not path.is_file():
            raise TableError(f"{path}: no such file; 'ldp-simulate data check {folder}' says where each is from")
        parts.append(read_csv(path))
    campaign = compile_draft(json.dumps(draft).encode(), toml=False)
    return typed(pd.concat(parts, ignore_index=True), campaign.features, campaign.label, name)


def draft_of(
    name: str, *, bins: int | None = None, numeric: bool = False, observed: bool = False, **privacy: Any
) -> dict[str, Any]:
    """A draft with the data set's documented values and public bounds; ``privacy`` as in a draft. All features are
    complete: where the tables lack a value they say so by one of the documented ones. Those of :data:`ORDERED` are
    ``ordered``.

    ``bins`` discretises the numbers. ``numeric`` takes columns whose documented values are whole numbers for numbers,
    from the least to the largest value. ``observed`` lists only the values that occur in
    the table, as the papers do; a campaign lists those that can occur.
    """
    described, orders = description_of(name), ORDERED.get(name, {})
    features = [
        _feature(column, bins, numeric, observed, orders.get(column["name"], ()))
        for column in described["columns"]
        if column["name"] != CLASS
    ]
    return {
        "version": 1,
        "title": described["title"],
        "label": {"name": CLASS, "classes": [str(value) for value in described["classes"]]},
        "features": features,
        "privacy": {"epsilon": 1, **privacy},
    }


def _feature(
    column: Mapping[str, Any], bins: int | None, numeric: bool, observed: bool, order: Sequence[str]
) -> dict[str, Any]:
    values = [str(value) for value in column.get("values", ())]
    if "domain" in column:
        low, high = column["domain"]
    elif numeric and all(value.isdigit() for value in values):
        low, high = min(map(int, values)), max(map(int, values))
    else:
        seen = [str(value) for value in column.get("observed_values", values)]
        # A campaign's feature has two values or more; a column that is constant in the table keeps its documented ones.
        listed = seen if observed and len(seen) > 1 else values
        present = [value for value in order if value in listed]
        ordered = {"ordered": True} if order and listed in (present, present[::-1]) else {}
        return describe_values(column["name"], listed, missing=False, **ordered)
    return describe_number(column["name"], low, high, bins=bins, missing=False)


LABEL: Final = "diagnosis"

BOUNDS: Final[Mapping[str, tuple[float, float]]] = {
    "mean radius": (5, 30),
    "mean texture": (5, 40),
    "mean perimeter": (40, 190),
    "mean area": (100, 2500),
    "mean smoothness": (0.05, 0.17),
    "mean compactness": (0, 0.35),
    "mean concavity": (0, 0.45),
    "mean concave points": (0, 0.2),
    "mean symmetry": (0.1, 0.3),
    "mean fractal dimension": (0.05, 0.1),
}
"""Public knowledge about the measurements, not about these people: the ranges that the data set's own description
publishes, rounded by hand. Nothing here is computed from the table.

Ten of the table's thirty columns: the others are the spread and the extreme of the same ten measurements. Every device
answers about one feature, so three times the questions would leave a third of the answers to each."""

BINS: Final = 4
EPSILON: Final = 2.0
"""With 20,000 devices each of the ten questions gets about 2,000 answers. At epsilon 2 these estimate each of the 8
joint shares of 4 bins and 2 classes (1/8 on average) with a standard error of 0.015; with 8 bins it would be 0.017
around an average of 1/16, and asking about all thirty columns would make it 0.026."""


def demonstration_source() -> Source:
    """The table's people, ten measurements and the diagnosis of each, and the campaign that asks them."""
    draft = {
        "version": 1,
        "title": "Is a lump malignant?",
        "purpose": "a demonstration with public measurements of cell nuclei",
        "label": {"name": LABEL, "classes": ["malignant", "benign"], "weight": 0},
        "features": [
            describe_number(name, low, high, bins=BINS, missing=False) for name, (low, high) in BOUNDS.items()
        ],
        "privacy": {"epsilon": EPSILON},
    }
    bunch = load_breast_cancer(as_frame=True)
    labels = pd.Series([str(bunch.target_names[code]) for code in bunch.target], name=LABEL)
    return Source("scikit-learn's breast cancer data, 569 people", Table(bunch.data[list(BOUNDS)], labels), draft)
