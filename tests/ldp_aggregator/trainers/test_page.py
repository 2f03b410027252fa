"""The page of the trainers: its example runs, its commands exist, its figures are there."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_score

from ldp_aggregator.cli.program import make_parser

PAGE = Path(__file__).resolve().parents[3] / "docs" / "trainers.md"


def test_the_examples_print_what_the_page_says(capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(50, 10, 100), "job": rng.choice(["none", "part", "full"], 100)})
    names = {"frame": frame, "labels": rng.choice(["yes", "no"], 100), "cross_val_score": cross_val_score}
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(examples) == 2
    for code in examples:
        exec(code, names)
        printed = capsys.readouterr().out.strip()
        assert printed == re.search(r"print\(.*\) +# (.*)", code).group(1)


@pytest.mark.parametrize(
    "command", re.findall(r"^ldp-aggregator (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
)
def test_every_command_of_the_page_is_one(command):
    options = make_parser().parse_args(command.split())
    assert callable(options.command)


def test_every_figure_of_the_page_is_there():
    links = re.findall(r"\]\((figures/[^)]+)\)", PAGE.read_text(encoding="utf-8"))
    assert len(set(links)) == 2
    assert all((PAGE.parent / link).is_file() for link in links)
