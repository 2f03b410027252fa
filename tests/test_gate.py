"""What decides about changes fails closed: what is missing, what is gone and what hangs is a failure, and is told."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

TESTS = """
import time
import pytest

def test_passes():
    pass

def test_is_skipped():
    pytest.skip("no compiler")

def test_has_no_tables():
    pytest.skip("no UCI tables in the folder")

@pytest.mark.xfail(reason="known")
def test_is_expected_to_fail():
    raise ValueError

def test_hangs():
    time.sleep(600 if {hangs} else 0)
"""
PLUGINS = ["-p", "gate", "-p", "pytest_timeout", "-p", "xdist"]
WITHOUT_A_LIBRARY = 'import pytest\n\npytest.importorskip("no_such_library")\n\ndef test_never():\n    pass\n'


@pytest.fixture
def outcome(tmp_path):
    """A function that runs a few tests under the gate: the exit code, and what was said."""

    def run(*options, required=False, hangs=False):
        folder = tmp_path / "tests"
        folder.mkdir(exist_ok=True)
        (folder / "test_some.py").write_text(TESTS.format(hangs=hangs))
        (folder / "test_library.py").write_text(WITHOUT_A_LIBRARY)
        (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    long\n    install\n")
        paths = os.pathsep.join([str(ROOT / "tests" / "support"), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "LDP_"))}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *PLUGINS, "-p", "no:cacheprovider", "-rs", *options, "tests"],
            cwd=tmp_path,
            env=environment
            | {"PYTHONPATH": paths, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
            | ({"LDP_BAYES_REQUIRED": "1"} if required else {}),
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    return run


def test_where_all_is_required_only_a_skip_that_is_named_is_none(outcome):
    code, said = outcome("--continue-on-collection-errors", required=True)
    assert code == 1
    assert "test_is_skipped was skipped, and LDP_BAYES_REQUIRED is set: no compiler" in said
    assert "test_library.py was skipped, and LDP_BAYES_REQUIRED is set: could not import 'no_such_library'" in said
    assert "1 failed, 2 passed, 1 skipped, 1 xfailed, 1 error" in said
    code, said = outcome()
    assert (code, "2 passed, 3 skipped, 1 xfailed" in said) == (0, True)


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["one process", "two workers"])
def test_fewer_tests_than_the_floor_are_a_failure(outcome, workers):
    assert outcome("--fewest=2", *workers)[0] == 0
    code, said = outcome("--fewest=3", *workers)
    assert code == 1
    assert "2 tests passed, and this run has at least 3" in said


def test_where_nothing_is_left_the_floor_is_missed(outcome):
    assert outcome("--fewest=1", "-k", "no_such_test")[0] == 1


def test_a_test_that_hangs_fails_with_the_line_where_it_does_and_the_others_run_on(outcome):
    code, said = outcome("--timeout=1", hangs=True)
    assert code == 1
    assert re.search(r"> +time.sleep\(600", said)
    assert "1 failed, 1 passed, 3 skipped, 1 xfailed" in said
    assert 0 < SETTINGS["tool"]["pytest"]["ini_options"]["timeout"] <= 180


def begun(script, **environment):
    """The landing script's own functions, and then ``script``."""
    text = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    return subprocess.run(
        ["bash", "-c", text[: text.index("\nmissing=()")] + "\n" + script, str(ROOT / ".ci" / "run")],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        check=False,
    )


def test_a_step_that_hangs_ends_the_run_and_tells_where_it_was():
    program = "import time\ntime.sleep(600)"
    done = begun(f"step 60 true\nstep 1 '{sys.executable}' -c '{program}'\necho never")
    assert done.returncode == 124
    assert "KeyboardInterrupt" in done.stderr
    assert "took longer than 1 s" in done.stderr
    assert "never" not in done.stdout
    assert re.search(r"^ +\d+ s  true$", done.stdout, re.MULTILINE)
    assert re.search(r"^ +\d+ s  in all$", done.stdout, re.MULTILINE)


def test_all_steps_together_have_a_limit_and_a_failure_ends_the_run():
    done = begun("MOST=1\nstep 600 sleep 60\necho never")
    assert (done.returncode, "never" in done.stdout) == (124, False)
    done = begun("step 600 false\necho never")
    assert (done.returncode, "never" in done.stdout) == (1, False)


def test_a_python_that_is_named_and_cannot_be_had_is_a_failure():
    done = subprocess.run([str(ROOT / ".ci" / "pythons"), "3.99"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Python 3.99 is not here" in done.stderr


def test_the_pythons_that_are_promised_are_those_that_are_tried():
    """On landing this one and the image's; at night every one that a classifier names."""
    promised = {word for word in map(version_of, SETTINGS["project"]["classifiers"]) if word}
    small = tomllib.loads((ROOT / "deploy" / "client-wheel" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert promised == {word for word in map(version_of, small["classifiers"]) if word}
    assert f">={min(promised)}" == SETTINGS["project"]["requires-python"]
    built = (ROOT / "deploy" / "Dockerfile").read_text()
    image = re.search(r"^ARG PYTHON=python:(\S+)-slim@sha256:[0-9a-f]{64}$", built, re.MULTILINE)[1]
    assert f"make pythons PYTHONS={image}\n" in (ROOT / ".ci" / "run").read_text()
    assert f"--python-version {image} " in (ROOT / "Makefile").read_text()
    assert {image, f"{sys.version_info.major}.{sys.version_info.minor}"} <= promised


def version_of(classifier):
    found = re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", classifier)
    return found and found[1]
