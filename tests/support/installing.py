"""What a stranger does with the distributions: builds them from a copy of the sources, and runs what was installed."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDERS = ("protocols", "ldp_client", "ldp_aggregator", "simulations")
SMALL = Path("deploy", "client-wheel")
_IGNORED = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "dist")


def run(command: Sequence[str | Path], **options: object) -> subprocess.CompletedProcess[str]:
    # Without PYTHONPATH and outside the checkout, so that only what is installed can be imported.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False, **options)


def printed(command: Sequence[str | Path], **options: object) -> str:
    """What a command prints that must not fail."""
    done = run(command, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def copy_of_sources(folder: Path) -> Path:
    """A build leaves files beside the sources."""
    for name in (*FOLDERS, "deploy"):
        shutil.copytree(REPOSITORY / name, folder / name, symlinks=True, ignore=_IGNORED)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, folder / name)
    return folder


def build_wheel(source: Path, folder: Path) -> Path:
    """The wheel of a folder or an archive."""
    printed([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, source])
    (made,) = folder.glob("*.whl")
    return made


def install(folder: Path, *wanted: str | Path) -> Path:
    """A fresh virtual environment into which these, and what they ask for, were installed; its programs."""
    printed([sys.executable, "-m", "venv", folder])
    printed([folder / "bin" / "python", "-m", "pip", "install", "--quiet", *wanted])
    return folder / "bin"
