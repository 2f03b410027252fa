"""Plants bugs, one at a time, and tells which of them no test finds.

    python tests/mutants/mutants.py [--count 200] [--seed N] [--only ROOM ...] [--jobs 2] [--old-calls]

Draws mutants of every room of the packages and clients, runs for each the tests that could see it in a copy of the
checkout, and writes the survivors to build/mutants.txt and all of it to build/mutants.json. A run that was interrupted
goes on where it was, as long as no file has changed. Ends with 1 where fewer than nine of ten are found.
"""

import argparse
import json
import os
import queue
import secrets
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build"
sys.path += [str(HERE), str(HERE.parent / "support")]

import calls  # noqa: E402
import gate  # noqa: E402
from copies import Copy  # noqa: E402
from drawing import Room, rooms, shares  # noqa: E402
from places import checked_out  # noqa: E402
from planting import Mutant  # noqa: E402
from trying import Healthy, Tester, Verdict, missing  # noqa: E402

FLOOR = 0.9
"""The share of mutants that tests find at least."""


@dataclass(frozen=True)
class Tried:
    """A mutant with its verdict; None where it is none."""

    room: str
    mutant: Mutant
    verdict: Verdict | None


class Journal:
    """All verdicts so far, a line of JSON each; begun anew where a file of the checkout has changed."""

    def __init__(self, path: Path, digest: str) -> None:
        self._path, self._alone = path, threading.Lock()
        first, *lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else [""]
        self.known: dict[str, Verdict | None] = {}
        if first == digest:
            for line in lines:
                told = json.loads(line)
                self.known[told["name"]] = told["verdict"] and Verdict(**told["verdict"])
        else:
            path.write_text(f"{digest}\n", encoding="utf-8")

    def add(self, mutant: Mutant, verdict: Verdict | None) -> None:
        told = {"name": mutant.name, "verdict": verdict and asdict(verdict)}
        with self._alone, self._path.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(told)}\n")
            self.known[mutant.name] = verdict


def tried(
    given: dict[str, int], drawn: dict[str, Iterator[Mutant]], testers: Sequence[Tester], journal: Journal
) -> list:
    """The verdicts on as many mutants of each room as it is given, by as many threads as there are testers."""
    wanted: queue.SimpleQueue[str] = queue.SimpleQueue()
    for turn in range(max(given.values(), default=0)):
        for room in given:
            if turn < given[room]:
                wanted.put(room)
    count, begun, alone = sum(given.values()), time.monotonic(), threading.Lock()
    results: list[Tried] = []

    def work(tester: Tester) -> None:
        while not wanted.empty():
            try:
                room = wanted.get_nowait()
            except queue.Empty:
                return
            verdict = None
            while verdict is None:
                with alone:
                    mutant = next(drawn[room], None)
                if mutant is None:
                    break
                if mutant.name not in journal.known:
                    journal.add(mutant, tester.verdict(mutant))
                verdict = journal.known[mutant.name]
            with alone:
                if mutant is not None:
                    results.append(Tried(room, mutant, verdict))
                spent = time.monotonic() - begun
                left = (count - len(results)) * spent / max(len(results), 1) / 60
                how = "nothing left" if verdict is None else verdict.by or "SURVIVED"
                place = f"{mutant.path}:{mutant.line} {mutant.kind}" if mutant else room
                print(f"{len(results):4} of {count}  {place}: {how}; {left:.0f} min left", flush=True)

    threads = [threading.Thread(target=work, args=[tester]) for tester in testers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(results, key=lambda one: (one.room, one.mutant.path, one.mutant.line))


def table(results: Sequence[Tried], root: Path, notes: Sequence[str]) -> str:
    """The rooms with what was tried and found, the survivors of each, and the sum as the last line."""
    of, found = Counter(one.room for one in results), Counter(one.room for one in results if one.verdict.by)
    lines = [*notes, "", *(f"{room:42} {found[room]:3} of {of[room]:3} found" for room in sorted(of))]
    for room in sorted(of):
        survivors = [one for one in results if one.room == room and not one.verdict.by]
        if survivors:
            lines += ["", f"Survivors in {room}"]
        for one in survivors:
            text = (root / one.mutant.path).read_text(encoding="utf-8")
            lines += [f"{one.mutant.path}:{one.mutant.line} {one.mutant.kind}", one.mutant.diff(text)]
            lines += [f"survived {' '.join(one.verdict.ran) or 'no test: none calls it'}"]
    share, hours = found.total() / max(of.total(), 1), sum(one.verdict.seconds for one in results) / 3600
    lines += ["", f"Their tests took {hours:.1f} hours; those of 200 take {200 * hours / max(of.total(), 1):.1f}"]
    lines += [f"{found.total()} of {of.total()} found, {share:.3f}; the floor is {FLOOR}"]
    return "\n".join(lines)


def is_enough(results: Sequence[Tried]) -> bool:
    """The floor is held; where nothing was tried, it is not."""
    return bool(results) and sum(bool(one.verdict.by) for one in results) >= FLOOR * len(results)


def digest_of(root: Path, files: Sequence[str]) -> str:
    total = sha256()
    for name in files:
        total.update(name.encode() + b"\0" + (root / name).read_bytes())
    return total.hexdigest()


def chosen(every: Sequence[Room], options: argparse.Namespace) -> tuple[list[Room], list[str]]:
    """The rooms whose mutants can be tried, and a sentence on each of the others; in a whole run most have to be."""
    wanted = [room for room in every if not options.only or room.name in options.only]
    absent = {room.name: why for room in wanted if (why := missing(ROOT, room.name))}
    gaps = [why for why in absent.values() if not any(why.startswith(said) for _, said, _ in gate.ALLOWED)]
    if gaps and os.environ.get(gate.VARIABLE):
        raise SystemExit(f"{gate.VARIABLE} is set: {'; '.join(gaps)}")
    told = [f"{name} has none: {why}; its share goes to the others" for name, why in absent.items()]
    return [room for room in wanted if room.name not in absent], told


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200, help="mutants in all (default: 200)")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**31), help="that of the run to repeat")
    parser.add_argument("--only", nargs="+", default=[], metavar="ROOM", help="folders of sources (default: all)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="copies in which tests run at a time")
    parser.add_argument("--old-calls", action="store_true", help="which test calls what is taken from an earlier run")
    options = parser.parse_args()
    files = checked_out()
    every = rooms(ROOT, files)
    if unknown := set(options.only) - {room.name for room in every}:
        names = ", ".join(room.name for room in every)
        parser.error(f"no room is called {', '.join(sorted(unknown))}; there are {names}")
    taken, notes = chosen(every, options)
    given = shares({room.name: len(room.lines) for room in taken}, options.count, options.seed)
    notes.insert(0, f"seed {options.seed}, {options.count} mutants of {sum(len(room.lines) for room in taken):,} lines")
    print("\n".join(notes), flush=True)

    digest, folder = digest_of(ROOT, files), BUILD / "mutants"
    folder.mkdir(parents=True, exist_ok=True)
    journal = Journal(folder / "journal.jsonl", digest)
    healthy = Healthy(Copy.made(ROOT, folder / "healthy", files))
    known = calls.kept(folder / "calls.json", "" if options.old_calls else digest)
    if known is None:
        print("The whole suite runs once, to note which test calls what", flush=True)
        known = calls.recorded(healthy.copy, options.jobs)
        calls.keep(folder / "calls.json", digest, known)
    copies = [Copy.made(ROOT, folder / f"copy-{number}", files) for number in range(options.jobs)]
    drawn = {room.name: room.drawn(options.seed) for room in taken}
    results = tried(given, drawn, [Tester(copy, healthy, known) for copy in copies], journal)

    if healthy.failing:
        notes.append(f"Fail without a bug, and were left out: {', '.join(sorted(healthy.failing))}")
    told = table(results, ROOT, notes)
    print(told)
    (BUILD / "mutants.txt").write_text(f"{told}\n", encoding="utf-8")
    (BUILD / "mutants.json").write_text(json.dumps([asdict(one) for one in results], indent=1), encoding="utf-8")
    for copy in (healthy.copy, *copies):
        shutil.rmtree(copy.folder)
    return 0 if is_enough(results) else 1


if __name__ == "__main__":
    sys.exit(main())
