"""What the tests of engines share."""

from __future__ import annotations

from archived import campaign  # noqa: F401 - a fixture
