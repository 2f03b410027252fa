"""A command of the aggregator, run in this process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ldp_aggregator.__main__ import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Exit code, standard output and standard error of a command."""

    def run_command(*arguments: object) -> tuple[int, str, str]:
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = int(str(stop.code))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run_command
