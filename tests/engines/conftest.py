"""What the tests of engines share."""

from archived import campaign  # noqa: F401 - a fixture
