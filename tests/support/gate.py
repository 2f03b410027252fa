"""A run that must be whole: where ``LDP_BAYES_REQUIRED`` is set, a skip that is not named here is a failure.

``--fewest N`` is the floor of one run: a test that is collected no more is missed by nobody else.
"""

import os
from collections.abc import Iterator

import pytest

VARIABLE = "LDP_BAYES_REQUIRED"

ALLOWED = (
    ("tests/", "no UCI tables in ", "the UCI tables are not part of the repository"),
    ("tests/phones/", "build/swift is missing", "make swift fetches a compiler, and is the night's"),
    ("tests/", "this user mounts nothing", "a container may forbid it; full disks are tried all the same"),
    ("tests/phones/", "strace may not trace", "a container may forbid it"),
    ("tests/engines/", "pyspark is not installed", "it takes a gigabyte"),
    ("tests/engines/", "ray is not installed", "it takes a gigabyte"),
)
"""Where a test may be skipped nevertheless, how the reason begins, and why that is no gap."""

LONG_SECONDS = 4 * 3600
"""The limit of a test marked ``long`` or ``install``: it takes the place of that in pyproject.toml."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fewest", type=int, default=0, metavar="N", help="fail where fewer than N tests pass")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        lasts = item.get_closest_marker("long") or item.get_closest_marker("install")
        if lasts and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(LONG_SECONDS))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    return _required(report, report.skipped and not hasattr(report, "wasxfail"))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    report = yield
    return _required(report, report.skipped)


def _required(
    report: pytest.CollectReport | pytest.TestReport, skipped: bool
) -> pytest.CollectReport | pytest.TestReport:
    """The report; a failure where it tells a skip that is a gap."""
    if skipped and os.environ.get(VARIABLE):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if not any(report.nodeid.startswith(place) and reason.startswith(said) for place, said, _ in ALLOWED):
            report.outcome = "failed"
            report.longrepr = f"{report.nodeid} was skipped, and {VARIABLE} is set: {reason}"
    return report


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Ends with a failure below the floor; a run on several workers counts in the process that started them."""
    if hasattr(session.config, "workerinput") or session.config.option.collectonly:
        return
    short = _passed(session.config) < session.config.getoption("fewest")
    if short and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    passed, fewest = _passed(config), config.getoption("fewest")
    if passed < fewest:
        told = f"FAILED: {passed} tests passed, and this run has at least {fewest} (--fewest)"
        terminalreporter.write_line(told, red=True)


def _passed(config: pytest.Config) -> int:
    return len(config.pluginmanager.get_plugin("terminalreporter").stats.get("passed", []))
