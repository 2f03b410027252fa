"""A child of the process that runs the tests."""

import os

import pytest

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def holds_in_a_child(act):
    """Whether ``act`` returns something true in a child; an exception there is none."""
    child = os.fork()
    if not child:
        try:
            os._exit(0 if act() else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == 0
