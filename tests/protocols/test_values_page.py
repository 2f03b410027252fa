"""The table of docs/values.md is true: every value in it is evaluated."""

import datetime
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from page_draft import TABLE_DRAFT

from ldp_client.problems import record_problems
from protocols import Campaign
from protocols.values import number_of, text_of

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "values.md").read_text(encoding="utf-8")
numpy, pandas = pytest.importorskip("numpy"), pytest.importorskip("pandas")
NAMES = {module.__name__: module for module in (datetime, numpy, pandas)} | {"Decimal": Decimal, "Fraction": Fraction}
TABLE = PAGE.partition("\n## ")[0]
ROWS = [line.strip("|").split("|") for line in TABLE.splitlines() if line.startswith("| `")]


def evaluated(cell):
    """The values between backticks; ``none`` is None."""
    return [None] if cell.strip() == "none" else [eval(code, dict(NAMES)) for code in re.findall(r"`([^`]*)`", cell)]


@pytest.mark.parametrize(("held", "text", "number"), ROWS)
def test_every_row_of_the_table_is_true(held, text, number):
    values, texts, (wanted,) = evaluated(held), evaluated(text), evaluated(number)
    texts = texts * len(values) if len(texts) == 1 else texts
    assert [text_of(value) for value in values] == texts
    assert [number_of(value) for value in values] == [wanted] * len(values)


def test_the_table_has_rows():
    assert len(ROWS) == 14


def test_the_example_prints_what_it_says(capsys):
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(example, {"campaign": Campaign.compile(TABLE_DRAFT), "record_problems": record_problems})
    assert capsys.readouterr().out.splitlines() == re.findall(r"# (.*)", example)
