"""The client under audit: anything that turns people into uploads.

As a program it reads a line of JSON for each person and answers with a line: the uploads in hexadecimal digits, with
spaces between them where there are several, or ``!`` and a reason where nothing is sent. docs/audit.md has the lines.
"""

from __future__ import annotations

import json
import math
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Final, NoReturn, Protocol, TypeVar

Answer = tuple[bytes, ...]
"""The uploads that one device sends, in their order; nothing where it sends nothing."""


class Refusal(tuple[bytes, ...]):
    """An answer without uploads, and the ``reason`` that was given for it."""

    reason = ""

    @classmethod
    def of(cls, reason: str) -> Refusal:
        refusal = cls()
        refusal.reason = reason
        return refusal


def all_refused(what: str, answers: Sequence[Answer]) -> str | None:
    """A finding about a check that was asked of somebody and answered by nobody, or None."""
    if not answers or any(answers):
        return None
    reasons = sorted({answer.reason for answer in answers if isinstance(answer, Refusal)})
    listed = f": {', '.join(reasons)}" if any(reasons) else ""
    return f"{what}: the client refused all {len(answers)} lines{listed}; nothing was checked"


_PATIENCE: Final = 120.0
"""Seconds that a program may take for the lines after which it is killed: it must answer without seeing their end."""


class UnreadableRecord(dict[str, object]):
    """A record that raises where one of the features in ``unreadable`` is read, as a lazy mapping of an app's may."""

    def __init__(self, values: Mapping[str, object], unreadable: Sequence[str]) -> None:
        super().__init__(values)
        self.unreadable = tuple(unreadable)

    def __getitem__(self, name: str) -> object:
        if name in self.unreadable:
            self._raise(name)
        return super().__getitem__(name)

    def get(self, name: str, default: object = None) -> object:
        if name in self.unreadable:
            self._raise(name)
        return super().get(name, default)

    def __contains__(self, name: object) -> bool:
        return name in self.unreadable or super().__contains__(name)

    def _raise(self, name: str) -> NoReturn:
        raise RuntimeError(f"{name} cannot be read")


@dataclass(frozen=True)
class Person:
    """The person whose answer is asked for: the same ``device`` is the same device again, None a fresh one.

    In a series ``now`` is the device's time, and ``later`` the person in later windows; nobody else if empty.
    ``token`` is the issuer's answer in hexadecimal, empty to ask for the request to it. Without a label it is None.
    """

    record: Mapping[str, object] = field(hash=False)
    label: str | None
    device: str | None = None
    now: str | None = None
    token: str | None = None
    later: tuple[Person, ...] = ()

    def in_window(self, window: int) -> Person:
        """The person in a window, from 0."""
        now = self.later[window - 1] if window and self.later else self
        return replace(now, device=self.device, later=())

    def to_json(self) -> dict[str, Any]:
        """The person as a line has it: ``odd`` holds what JSON has no word for."""
        odd = {name: word for name, value in self.record.items() if (word := _odd(value)) is not None}
        if isinstance(self.record, UnreadableRecord):
            odd |= dict.fromkeys(self.record.unreadable, "unreadable")
        plain = {name: value for name, value in self.record.items() if name not in odd}
        later = {"later": [person.to_json() for person in self.later]} if self.later else {}
        label = {} if self.label is None else {"label": self.label}
        return {"record": plain, **({"odd": odd} if odd else {}), **label, **later}


class Client(Protocol):
    """One life of a process: it answers people in order, keeps what it must in ``storage`` (if any), and is killed."""

    def __call__(self, document: str, people: Sequence[Person], storage: Path | None = None, /) -> list[Answer]: ...


def command_client(command: Sequence[str]) -> Client:
    """The client that ``command`` runs."""

    def ask(document: str, people: Sequence[Person], storage: Path | None = None, /) -> list[Answer]:
        process, stdin, stdout = _started(command)
        with process:
            lines = _lines(document, people, storage)
            writer = threading.Thread(target=_write, args=(stdin, lines, storage is None))
            writer.start()
            if storage is None:
                answered = stdout.read().splitlines()
            else:
                # What must be on disk before it is sent is not helped by an orderly end.
                with _killed_in_the_end(process):
                    answered = [line for _, line in zip(people, stdout, strict=False)]
            writer.join()
            with suppress(BrokenPipeError):
                stdin.close()
        if process.returncode and storage is None:
            raise ChildProcessError(f"the client ended with exit code {process.returncode}")
        if storage is None and answered and all(line.startswith(b"!") for line in answered):
            raise ChildProcessError(
                f"the client refuses everybody: {answered[0][1:61].decode(errors='replace').strip()}"
            )
        answers = [_read(line, number) for number, line in enumerate(answered, start=1)]
        if len(answers) != len(people):
            raise ChildProcessError(f"the client answered {len(answers)} of {len(people)} lines")
        return answers

    return ask


class Dialogue(Protocol):
    """A life of a process that is asked in several turns, each when the one before has been answered."""

    def __call__(self, lines: Sequence[Mapping[str, Any]], /) -> list[Answer]: ...


Talk = Callable[[str, "Path | None"], AbstractContextManager[Dialogue]]
"""Begin a dialogue about a document, with a storage or without; its process is killed in the end."""


def command_talk(command: Sequence[str]) -> Talk:
    """Dialogues with the client that ``command`` runs."""

    @contextmanager
    def talk(document: str, storage: Path | None) -> Iterator[Dialogue]:
        process, stdin, stdout = _started(command)
        first: dict[str, Any] = {"document": document} | ({} if storage is None else {"storage": str(storage)})

        def ask(lines: Sequence[Mapping[str, Any]], /) -> list[Answer]:
            written = [
                json.dumps({**(first if not number else {}), **line}, ensure_ascii=False, allow_nan=False).encode()
                + b"\n"
                for number, line in enumerate(lines)
            ]
            writer = threading.Thread(target=_write, args=(stdin, iter(written), False))
            writer.start()
            answered = [line for _, line in zip(lines, stdout, strict=False)]
            writer.join()
            if len(answered) != len(lines):
                raise ChildProcessError(f"the client answered {len(answered)} of {len(lines)} lines of a dialogue")
            return [_read(line, number) for number, line in enumerate(answered, start=1)]

        with process, _killed_in_the_end(process):
            try:
                yield ask
            finally:
                with suppress(BrokenPipeError):
                    stdin.close()

    return talk


class Stopwatch(Protocol):
    """A life of a process that is asked one person after the other, each when the one before has been answered."""

    def __call__(self, document: str, people: Sequence[Person], patience: float, /) -> list[float]:
        """The seconds that each answer took, of as many as were given in ``patience`` seconds."""
        ...


def command_stopwatch(command: Sequence[str]) -> Stopwatch:
    """The stopwatch for the client that ``command`` runs."""

    def measure(document: str, people: Sequence[Person], patience: float, /) -> list[float]:
        process, stdin, stdout = _started(command)
        seconds: list[float] = []
        with process, _killed_in_the_end(process):
            end = time.perf_counter() + patience
            for line in list(_lines(document, people, None)):
                start = time.perf_counter()
                _write(stdin, iter([line]), close=False)
                if not stdout.readline():
                    with suppress(BrokenPipeError):  # What was not written yet would be at the end, and hide this.
                        stdin.close()
                    raise ChildProcessError(
                        f"the client answered {len(seconds)} lines and then no more, one after the other"
                    )
                now = time.perf_counter()
                seconds.append(now - start)
                if now > end:
                    break
        return seconds

    return measure


def _started(command: Sequence[str]) -> tuple[subprocess.Popen[bytes], IO[bytes], IO[bytes]]:
    try:
        # Safety: the command is the operator's own, from its command line; no shell reads it.
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603
    except OSError as error:
        raise ChildProcessError(f"{command[0]} cannot be started: {error.strerror}") from None
    if process.stdin is None or process.stdout is None:
        raise AssertionError("both are pipes")
    return process, process.stdin, process.stdout


@contextmanager
def _killed_in_the_end(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Kill the process when the block ends or patience does; no timer outlives the block."""
    patience = threading.Timer(_PATIENCE, process.kill)
    patience.start()
    try:
        yield
    finally:
        patience.cancel()
        process.kill()


def _lines(document: str, people: Sequence[Person], storage: Path | None) -> Iterator[bytes]:
    first: dict[str, Any] = {"document": document} | ({} if storage is None else {"storage": str(storage)})
    written: dict[int, bytes] = {}
    for person in people:
        line = written.get(id(person))
        if line is None or first:
            device = {name: of for name in ("device", "now", "token") if (of := getattr(person, name)) is not None}
            line = json.dumps({**first, **person.to_json(), **device}, ensure_ascii=False, allow_nan=False).encode()
            line += b"\n"
            if not first:
                written[id(person)] = line
        first = {}
        yield line


def _write(stream: IO[bytes], lines: Iterator[bytes], close: bool) -> None:
    # A client that stops reading is found out by the number of its answers.
    with suppress(BrokenPipeError):
        for line in lines:
            stream.write(line)
        stream.flush()
        if close:
            stream.close()


def _read(line: bytes, number: int) -> Answer:
    if line.startswith(b"!"):
        return Refusal.of(line[1:61].decode(errors="replace").strip())
    try:
        return tuple([bytes.fromhex(word) for word in line.decode().split()])
    except ValueError:
        raise ChildProcessError(
            f"line {number}: not an upload in hexadecimal, but {line[:60].decode(errors='replace').strip()!r}"
        ) from None


def _odd(value: object) -> str | None:
    if not isinstance(value, float) or math.isfinite(value):
        return None
    return "nan" if math.isnan(value) else "infinity" if value > 0 else "-infinity"


T = TypeVar("T")


def two(life: Callable[[int], T], at_once: bool) -> tuple[T, T]:
    """The results of ``life(0)`` and ``life(1)``, of a client in two processes one beside the other."""
    if not at_once:
        return life(0), life(1)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(life, (0, 1))
    return first, second
