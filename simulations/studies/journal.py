"""Finished trials on disk, one JSON object a line, so that an interrupted experiment goes on where it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from simulations.tables.frames import Table, TableError


class Journal:
    """The trials of one experiment in a file that may hold others, too; ``path`` None keeps nothing."""

    def __init__(self, path: Path | None, experiment: str) -> None:
        self._path = path
        self._experiment = experiment

    def finished(self) -> dict[int, list[dict[str, Any]]]:
        """The rows of this experiment's finished trials, by seed. A last line that was cut short is ignored."""
        entries = (_entry(line) for line in self._lines())
        return {entry["seed"]: entry["rows"] for entry in entries if entry.get("experiment") == self._experiment}

    def add(self, seed: int, rows: Sequence[dict[str, Any]]) -> None:
        """Keep a finished trial."""
        if self._path is None:
            return
        entry = json.dumps({"experiment": self._experiment, "seed": seed, "rows": list(rows)})
        # The line starts with its own line break: a predecessor that was cut short stays the only one lost.
        with self._path.open("a", encoding="utf-8") as file:
            file.write("\n" + entry + "\n")

    def _lines(self) -> list[str]:
        if self._path is None or not self._path.exists():
            return []
        try:
            return self._path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise TableError(f"{self._path}: not a journal of trials ({error})") from None


def experiment_id(people: Table, *described: Any) -> str:
    """Name the experiment that a trial belongs to: the same people, the same of all that is ``described`` (as JSON)."""
    hashes = (pd.util.hash_pandas_object(part, index=False) for part in (people.frame, people.labels))
    content = b"".join(part.to_numpy().tobytes() for part in hashes)
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode() + content).hexdigest()[:16]


def _entry(line: str) -> dict[str, Any]:
    """An entry of the file; nothing for a line that was cut short."""
    try:
        entry = json.loads(line)
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}
