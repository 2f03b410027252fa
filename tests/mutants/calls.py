"""The test files in which each function of the packages is called: a bug in it is seen by these or by none.

One run of the whole suite in a copy, in which every interpreter notes the first call of a function in a test file.
"""

import json
import os
import re
import sys
import threading
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

VARIABLE = "LDP_BAYES_CALLS"
"""The folder in which interpreters note what they call."""
HOUR = 3600
STARTED = f"import os; '{VARIABLE}' in os.environ and __import__('calls').note(os.environ['{VARIABLE}'])\n"
"""The line of a ``.pth`` file, which every interpreter of an environment executes."""


def note(folder: str) -> None:
    """Note from now on in this process and its children: the test file, the source file and the function of a call."""
    root = str(Path(folder).parents[1])
    places: dict[int, tuple[object, str]] = {}
    seen: set[tuple[str, str]] = set()
    notes = os.open(Path(folder, str(os.getpid())), os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def place_of(code) -> str:
        path = code.co_filename.removeprefix(f"{root}/")
        is_ours = path != code.co_filename and path.startswith(("ldp_", "protocols/", "simulations/"))
        return f"{path}\t{code.co_qualname}" if is_ours else ""

    def called(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            code = frame.f_code
            if id(code) not in places:
                places[id(code)] = code, place_of(code)  # The code is kept, and so is its number.
            place = places[id(code)][1]
            if place:
                test = os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[0]
                if (test, place) not in seen:
                    seen.add((test, place))
                    os.write(notes, f"{test}\t{place}\n".encode())

    threading.setprofile(called)
    sys.setprofile(called)


@dataclass(frozen=True)
class Calls:
    """``tests`` has the test files that call a function, by "path\\tname"; ``seconds`` what each of them takes."""

    tests: dict[str, list[str]]
    seconds: dict[str, float]

    def of(self, path: str, function: str) -> list[str]:
        """The test files that call a function, or anything in its file where it is none; the quickest first."""
        wanted = f"{path}\t{function}"
        found = {
            test
            for place, tests in self.tests.items()
            if place == wanted or (not function and place.startswith(wanted))
            for test in tests
        }
        return sorted(found, key=lambda test: (self.seconds.get(test, 0.0), test))


def noted(lines: Iterable[str], said: str) -> Calls:
    """The calls of a run, from its notes and from the durations that pytest told."""
    tests, seconds = defaultdict(set), defaultdict(float)
    for line in lines:
        test, _, place = line.rstrip("\n").partition("\t")
        if test:
            tests[place].add(test)
    for duration, test in re.findall(r"^([\d.]+)s (?:call|setup|teardown) +(\S+?\.py)::", said, re.MULTILINE):
        seconds[test] += float(duration)
    return Calls({place: sorted(found) for place, found in sorted(tests.items())}, dict(seconds))


def recorded(copy, jobs: int) -> Calls:
    """Run the whole suite in a copy, and note the calls."""
    (packages,) = (copy.folder / ".venv").glob("lib/python*/site-packages")
    started, folder = packages / "calls.pth", copy.folder / "build" / "calls"
    folder.mkdir(parents=True, exist_ok=True)
    started.write_text(f"{copy.folder / 'tests' / 'mutants'}\n{STARTED}", encoding="utf-8")
    command = ["-q", "-n", str(jobs), "--dist", "worksteal", "--durations=0", "-vv", "tests"]
    python = str(copy.folder / ".venv" / "bin" / "python")
    ran = copy.run([python, "-m", "pytest", *command], 4 * HOUR, **{VARIABLE: str(folder)})
    started.unlink()
    return noted([line for path in folder.iterdir() for line in path.read_text("utf-8").splitlines()], ran.said)


def kept(path: Path, digest: str) -> Calls | None:
    """The calls of an earlier run on the same files."""
    if not path.is_file():
        return None
    known = json.loads(path.read_text(encoding="utf-8"))
    return Calls(known["tests"], known["seconds"]) if digest in ("", known["digest"]) else None


def keep(path: Path, digest: str, calls: Calls) -> None:
    told = {"digest": digest, "seconds": calls.seconds, "tests": calls.tests}
    path.write_text(json.dumps(told, indent=0), encoding="utf-8")
