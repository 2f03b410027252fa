"""Common to the tests of the archive."""

from __future__ import annotations

from archived import campaign  # noqa: F401 - a fixture
