"""Common to the tests of the archive."""

from archived import campaign  # noqa: F401 - a fixture
