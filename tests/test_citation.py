"""The citation file says the version, and names whoever the documentation builds on."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = {"Yilmaz": 2019, "Wang": 2017, "Vaidya": 2013, "Zafarani": 2020, "Marchioro": 2022}


def test_it_names_the_five_sources_and_the_version():
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    first = re.findall(r"    authors:\n      - \{family-names: (\w+),.*?\n    year: (\d+)\n", cited, re.DOTALL)
    assert {name: int(year) for name, year in first} == SOURCES
    (version,) = re.findall(r"^version: (\S+)$", cited, re.MULTILINE)
    assert f'\nversion = "{version}"\n' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
