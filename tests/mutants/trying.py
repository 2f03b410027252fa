"""The verdict on a mutant: found by which test, or survived which tests.

A failure counts where the same test passes in a copy without a bug. A test that fails there is left out from then on.
"""

import re
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path

from calls import Calls
from copies import Copy, Ran
from places import FILES, mirrored
from planting import Mutant

MINUTES = 60
SECONDS = 30 * MINUTES
"""The limit of a command: what takes longer with a bug, and not without it, is found."""
PART_SECONDS = 5 * MINUTES
"""Of the tests that call what was changed, those that take this long run together."""
NO_TESTS = 5
FAILED = re.compile(r"^(?:FAILED|ERROR) (tests/\S+?\.py)(::.*?)?(?: - .*)?$", re.MULTILINE)
UNMIRRORED = re.compile(r"^(?:protocols/|simulations/)(?=ldp_)")
FLOWER = "ldp_aggregator/flower/"


@dataclass(frozen=True)
class Compiled:
    """The build of a language, and its tests in the order in which they run: each a command.

    source, program
        Where its sources are; a file that is there when it is built.
    build
        The command that builds it again.
    runs
        The files that run, below the program's folder, where the same sources make the same bytes: a change that leaves
        them as they are is none.
    """

    source: str
    program: str
    build: tuple[str, ...]
    tests: tuple[tuple[str, ...], ...]
    runs: str = ""


COMPILED = (
    Compiled(
        "javascript/",
        "javascript/dist/core.js",
        ("node", "javascript/build.mjs"),
        (
            ("sh", "-c", "cd javascript && npm run tested -- test/*.test.mjs"),
            ("sh", "-c", "cd javascript && node test/check_vectors.mjs"),
            ("tests/javascript",),
        ),
        "**/*.js",
    ),
    Compiled(
        "kotlin/",
        "build/kotlin/tests.jar",
        (".venv/bin/python", "kotlin/build.py"),
        (("tests/phones", "-k", "kotlin"),),
    ),
    Compiled(
        "swift/",
        "build/swift/checks",
        (".venv/bin/python", "swift/build.py"),
        (("tests/phones", "tests/swift", "-k", "swift"),),
    ),
)


def missing(root: Path, room: str) -> str:
    """Why the mutants of a room cannot be tried; empty where they can."""
    if f"{room}/" == FLOWER and not (root / ".venv-flower" / ".installed").is_file():
        return "Flower is not installed; make flower"
    for language in COMPILED:
        if room.startswith(language.source) and not (root / language.program).is_file():
            return f"{Path(language.program).parent} is missing; make {language.source[:-1]} builds it"
    return ""


@dataclass(frozen=True)
class Verdict:
    """``by`` says what found it, and is empty where nothing did; ``ran`` has all tests that ran."""

    by: str
    ran: list[str]
    seconds: float


class Healthy:
    """A copy without a bug, which all workers ask about what failed. ``failing`` has the tests that fail there, too."""

    def __init__(self, copy: Copy) -> None:
        self.copy, self.failing = copy, set()
        self._passed: dict[tuple[str, ...], bool] = {}
        self._alone = threading.Lock()

    def passes(self, batch: tuple[str, ...]) -> bool:
        """All of a batch but for what fails there in any case."""
        with self._alone:
            while batch not in self._passed:
                ran = _run(self.copy, batch, sorted(self.failing), SECONDS, at_once=False)
                new = {test + name for test, name in FAILED.findall(ran.said)} - self.failing
                self.failing |= new
                if ran.code in (0, NO_TESTS) or not new:
                    self._passed[batch] = ran.code in (0, NO_TESTS)
            return self._passed[batch]


@dataclass(frozen=True)
class Tester:
    """The tests of all languages in a copy of one's own; ``seconds`` is the limit of each command."""

    copy: Copy
    healthy: Healthy
    calls: Calls
    seconds: float = SECONDS

    def verdict(self, mutant: Mutant) -> Verdict | None:
        """None where the mutant is none: its compiler refuses it, or makes of it what it made before."""
        compiled = next((one for one in COMPILED if mutant.path.startswith(one.source)), None)
        with self.copy.planted(mutant):
            if compiled is None:
                return self.tried(python_batches(mutant, self.calls))
            try:
                return self.tried(compiled.tests) if self._is_built(compiled) else None
            finally:
                place = Path(compiled.program).parent
                shutil.rmtree(self.copy.folder / place)
                shutil.copytree(self.healthy.copy.folder / place, self.copy.folder / place, symlinks=True)

    def _is_built(self, compiled: Compiled) -> bool:
        built = self.copy.run(compiled.build, SECONDS)
        folders = [(one.folder / compiled.program).parent for one in (self.copy, self.healthy.copy)]
        if built.code != 0 or not compiled.runs:
            return built.code == 0
        made, before = (
            {str(path.relative_to(at)): path.read_bytes() for path in at.glob(compiled.runs)} for at in folders
        )
        return made != before

    def tried(self, batches: tuple[tuple[str, ...], ...]) -> Verdict:
        ran, seconds = [], 0.0
        for batch in batches:
            ran += batch
            while True:
                left_out = sorted(self.healthy.failing)
                result = _run(self.copy, batch, left_out, self.seconds, at_once=True)
                seconds += result.seconds
                if result.code in (0, NO_TESTS):
                    break
                failed = FAILED.findall(result.said)
                passes = self.healthy.passes(tuple(sorted({test for test, _ in failed})) or batch)
                if left_out != sorted(self.healthy.failing):
                    continue  # Once more, without those that fail in any case.
                if passes:
                    by = "".join(failed[0]) if failed else " ".join(batch)
                    return Verdict(by if result.code is not None else f"time-out of {by}", ran, seconds)
                break
        return Verdict("", ran, seconds)


def python_batches(mutant: Mutant, calls: Calls) -> tuple[tuple[str, ...], ...]:
    """The tests of the module, or of its folder where it has none; then those that call what was changed."""
    if mutant.path.startswith(FLOWER):
        return (("tests/flower",),)
    near = near_tests(mutant.path)
    far = [test for test in calls.of(mutant.path, mutant.function) if test not in near]
    batches, spent = [near] if near else [], PART_SECONDS
    for test in far:
        if spent >= PART_SECONDS:
            batches.append(())
            spent = 0.0
        batches[-1] += (test,)
        spent += calls.seconds.get(test, 0.0)
    return tuple(batches)


def near_tests(path: str) -> tuple[str, ...]:
    """The test files that are named after a module; where there is none, all that stand in the mirrored folder."""
    module = path.removesuffix(".py").removesuffix("/__init__")
    of = {
        name: mirrored(name.removeprefix("tests/"))
        for name in sorted(FILES)
        if name.startswith("tests/ldp_") and Path(name).name.startswith("test_")
    }
    own = tuple(name for name, place in of.items() if place == module)
    folder = f"tests/{UNMIRRORED.sub('', path).rpartition('/')[0]}"
    return own or tuple(name for name in of if name.rpartition("/")[0] == folder)


def _run(copy: Copy, batch: tuple[str, ...], left_out: list[str], seconds: float, *, at_once: bool) -> Ran:
    """Run a batch: tests by pytest, which ends at the first failure where ``at_once`` is set, or a command."""
    if not batch[0].startswith("tests"):
        return copy.run(batch, seconds)
    environment = ".venv-flower" if batch[0].startswith("tests/flower") else ".venv"
    python = str(copy.folder / environment / "bin" / "python")
    options = ["-q", "-rfE", "-p", "no:cacheprovider", *(["-x"] if at_once else [])]
    return copy.run([python, "-m", "pytest", *options, *(f"--deselect={test}" for test in left_out), *batch], seconds)
