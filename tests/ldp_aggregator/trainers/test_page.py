"""The page of the trainers: its figures are there."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "trainers.md"


def test_every_figure_of_the_page_is_there():
    links = re.findall(r"\]\((figures/[^)]+)\)", PAGE.read_text(encoding="utf-8"))
    assert len(set(links)) == 2
    assert all((PAGE.parent / link).is_file() for link in links)
