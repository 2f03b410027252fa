"""diffprivlib's GaussianNB on the same splits, in an environment of its own: nothing of it is imported here."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from simulations.figures.cross_validation import Split
from simulations.tables.frames import TableError

PROGRAM: Final = Path(__file__).with_name("diffprivlib_program.py")
NAME: Final = "diffprivlib"


@dataclass(frozen=True)
class Peer:
    """An interpreter that has diffprivlib."""

    python: str
    version: str

    @property
    def name(self) -> str:
        """As it stands in tables and plots."""
        return f"{NAME} {self.version}"

    def accuracies(self, split: Split, epsilons: Sequence[float]) -> list[float]:
        """The accuracy on the people held out for each epsilon; all features are numbers."""
        features = split.data.schema["features"]
        names = [feature["name"] for feature in features]
        classes = list(split.data.schema["label"]["classes"])
        arrays: dict[str, NDArray[Any]] = {
            bound: np.array([feature[bound] for feature in features], dtype=np.float64) for bound in ("low", "high")
        }
        for name, table in (("train", split.training), ("test", split.held_out)):
            arrays[name] = table.frame[names].to_numpy(dtype=np.float64)
            arrays[f"{name}_classes"] = np.array([classes.index(label) for label in table.labels])
        arrays |= {"epsilons": np.array(epsilons), "seed": np.array(split.number)}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "split.npz"
            np.savez(path, allow_pickle=False, **arrays)
            found: list[float] = json.loads(_output(self.python, str(PROGRAM), str(path)))
        return found


def find_peer(python: str) -> Peer:
    """Check the interpreter. Raises TableError, saying how to make one, where it lacks diffprivlib."""
    try:
        version = _output(python, "-c", "import diffprivlib; print(diffprivlib.__version__)").strip()
    except (OSError, subprocess.CalledProcessError) as error:
        told = (error.stderr or "").strip().splitlines() if isinstance(error, subprocess.CalledProcessError) else []
        problem = told[-1] if told else getattr(error, "strerror", None) or str(error)
        raise TableError(
            f"--peer {python}: cannot import diffprivlib ({problem}); "
            "make an environment with python -m venv F; F/bin/pip install diffprivlib"
        ) from None
    return Peer(python, version)


def _output(python: str, *arguments: str) -> str:
    done = subprocess.run([python, *arguments], capture_output=True, check=True, text=True)  # noqa: S603 (the user names it)
    return done.stdout
