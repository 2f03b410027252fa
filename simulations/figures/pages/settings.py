"""One setting of the study of honest accuracy: a table, an epsilon, a number of devices."""

from __future__ import annotations

from typing import Any

import pandas as pd


def row_of(table: pd.DataFrame, name: str, epsilon: float, devices: int, variant: str) -> dict[str, Any]:
    """What was found of a variant at a setting."""
    here = (table["dataset"] == name) & (table["epsilon"] == epsilon)
    (found,) = table[here & (table["devices"] == devices) & (table["variant"] == variant)].to_dict("records")
    return {str(key): value for key, value in found.items()}


def three(value: float) -> str:
    """An accuracy as the pages print it."""
    return f"{value:.3f}".removeprefix("0")
