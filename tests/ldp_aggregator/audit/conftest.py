"""Audits of the tests try few of the small seeds, which last a third of a short audit."""

from __future__ import annotations

import pytest

from ldp_aggregator.audit import seeds


@pytest.fixture(autouse=True)
def _few_seeds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """test_seeds.py, and every audit at length, have them all."""
    if request.path.name != "test_seeds.py" and request.node.get_closest_marker("long") is None:
        monkeypatch.setattr(seeds, "SMALL", 1 << 8)
