"""The client under audit: anything that turns people into uploads.

As a program it reads a line of JSON for each person (``record``, ``label``, in the first line ``document``, and
``device`` where the same device is to be asked again) and answers with a line of hexadecimal digits, the upload.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any


class BlackBoxError(Exception):
    """The client under audit did not answer as it should."""


@dataclass(frozen=True)
class Person:
    """Whose answer is asked for. The same ``device`` means the same device again, None a fresh one."""

    record: Mapping[str, object] = field(hash=False)
    label: str
    device: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {"record": dict(self.record), "label": self.label}


Client = Callable[[str, Sequence[Person]], list[bytes]]
"""From a document's text and people to one upload each."""


def command_client(command: Sequence[str]) -> Client:
    """The client that ``command`` runs."""

    def ask(document: str, people: Sequence[Person]) -> list[bytes]:
        try:
            # Safety: the command is the operator's own, from its command line; no shell reads it.
            process = subprocess.Popen(  # noqa: S603
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
            )
        except OSError as error:
            raise BlackBoxError(f"{command[0]} cannot be started: {error.strerror}") from None
        with process:
            if process.stdin is None or process.stdout is None:
                raise AssertionError("both are pipes")
            writer = threading.Thread(target=_write, args=(process.stdin, document, people))
            writer.start()
            uploads = [_read(line, number) for number, line in enumerate(process.stdout, start=1)]
            writer.join()
        if process.returncode:
            raise BlackBoxError(f"the client ended with exit code {process.returncode}")
        if len(uploads) != len(people):
            raise BlackBoxError(f"the client answered {len(uploads)} of {len(people)} lines")
        return uploads

    return ask


def _write(stream: IO[str], document: str, people: Sequence[Person]) -> None:
    # A client that stops reading is found out by the number of its answers.
    with suppress(BrokenPipeError), stream:
        first: dict[str, Any] = {"document": document}
        for person in people:
            device = {} if person.device is None else {"device": person.device}
            stream.write(json.dumps({**first, **person.to_json(), **device}, ensure_ascii=False) + "\n")
            first = {}


def _read(line: str, number: int) -> bytes:
    try:
        return bytes.fromhex(line.strip())
    except ValueError:
        raise BlackBoxError(f"line {number}: not an upload in hexadecimal, but {line.strip()[:60]!r}") from None
