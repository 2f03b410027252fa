"""What all tests share: the benchmark tables, copies of public UCI datasets kept outside the repository; hypothesis."""

import gc
import os
from collections.abc import Callable
from pathlib import Path

# Before anybody imports numpy: threads of linear algebra that wait for one another on a busy machine take many times as
# long as one, here and in the processes that tests start.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from forked import programs
from hypothesis import HealthCheck, settings

from ldp_protocols import LdpError

DATA_VARIABLE = "LDP_BAYES_DATA"

pytest_plugins = ["gate"]

# A busy machine must not fail a test: how long an example took says nothing about what it checked. The same examples at
# every run: a change is judged by what it changes. --hypothesis-profile=fresh looks for new ones, and for many more;
# --hypothesis-seed=N with it looks at the same ones again.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeatable", patient, derandomize=True, max_examples=30)
settings.register_profile("fresh", patient, derandomize=False, max_examples=500, print_blob=True)
settings.load_profile("repeatable")


def pytest_sessionstart() -> None:
    """Collecting makes objects that stay: nobody looks for garbage among them, neither now nor between the tests."""
    gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture
def code_of() -> Callable[..., str]:
    """The code of the error of this kind that a call raises."""

    def code(kind: type[LdpError], call: Callable[..., object], *given: object, **named: object) -> str:
        with pytest.raises(kind) as caught:
            call(*given, **named)
        return caught.value.code

    return code


@pytest.fixture
def forked_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpreters that have imported already stand first in the PATH: `python`, `ldp-aggregator` and `ldp-client`."""
    monkeypatch.setenv("PATH", os.pathsep.join([str(programs()), os.environ["PATH"]]))


@pytest.fixture(scope="session")
def uci_folder() -> Path:
    """The folder with the tables; skips where one of those of UCI is missing."""
    from ldp_simulations.benchmarks import files_of  # Here, for environments without it.

    configured = os.environ.get(DATA_VARIABLE)
    folder = Path(configured) if configured else Path(__file__).resolve().parents[2] / "shared" / "data"
    named = [file["file"] for _, file in files_of()]
    if absent := [name for name in named if "/" not in name and not (folder / name).is_file()]:
        pytest.skip(
            f"no UCI tables in {folder}: {', '.join(absent)} missing; 'ldp-simulate data check {folder}' says where "
            f"each is from, and {DATA_VARIABLE} names another folder"
        )
    return folder
