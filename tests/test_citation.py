"""The citation file is what its readers parse, says the version, and names whoever the documentation builds on."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = {"Yilmaz": 2019, "Wang": 2017, "Vaidya": 2013, "Zafarani": 2020, "Marchioro": 2022}


def test_it_names_the_five_sources_and_the_version():
    yaml = pytest.importorskip("yaml")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {one["authors"][0]["family-names"]: one["year"] for one in cited["references"]} == SOURCES
    assert f'version = "{cited["version"]}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert cited["license"] == "Apache-2.0"
