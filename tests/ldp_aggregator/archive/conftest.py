"""What the tests of the archive share."""

from __future__ import annotations

from archived import campaign  # noqa: F401 - a fixture
