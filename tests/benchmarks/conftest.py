from __future__ import annotations

from postgres import postgres  # noqa: F401 - a fixture
