"""A copy of the checkout in which bugs are planted, with an environment of its own that runs it."""

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from planting import Mutant

ENVIRONMENTS = (".venv", ".venv-flower", "javascript/node_modules")
"""What is installed and never written in place: a copy links its files."""
BUILT = ("javascript/dist", "build/kotlin", "build/swift")
MARK = "LDP_BAYES_MUTANT"
"""The variable by which all that a run has started is known."""
UNSET = ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "LDP_BAYES_REQUIRED", "VIRTUAL_ENV")
SECONDS_TO_END = 20


@dataclass(frozen=True)
class Ran:
    """A command's exit status, None where its time ran out; what it said; the seconds that it took."""

    code: int | None
    said: str
    seconds: float


@dataclass(frozen=True)
class Copy:
    """A copy of the checkout at ``root`` in ``folder``."""

    root: Path
    folder: Path

    @classmethod
    def made(cls, root: Path, folder: Path, files: Sequence[str]) -> "Copy":
        """A new copy of these files, and of what is installed and built beside them."""
        shutil.rmtree(folder, ignore_errors=True)
        for name in files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, folder / name)
        for command in (["init", "-q"], ["add", "--all"], ["commit", "-q", "-m", "The sources"]):
            as_nobody = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]
            subprocess.run(["git", *as_nobody, *command], cwd=folder, check=True)
        for names, link in ((ENVIRONMENTS, os.link), (BUILT, shutil.copy2)):
            for name in names:
                if (root / name).is_dir():
                    shutil.copytree(root / name, folder / name, symlinks=True, copy_function=link)
        _moved(folder, root)
        return cls(root, folder)

    @contextlib.contextmanager
    def planted(self, mutant: Mutant) -> Iterator[None]:
        """The copy with a bug, for as long as the block lasts."""
        text = (self.root / mutant.path).read_text(encoding="utf-8")
        self._write(mutant.path, mutant.planted(text))
        try:
            yield
        finally:
            self._write(mutant.path, text)

    def _write(self, path: str, text: str) -> None:
        """Without the bytecode of what stood there: a second may pass for the same time, a bug for the same length."""
        place = self.folder / path
        place.write_text(text, encoding="utf-8")
        for old in place.parent.glob(f"__pycache__/{place.stem}.*.pyc"):
            old.unlink()

    def run(self, command: Sequence[str], seconds: float, **variables: str) -> Ran:
        """Run a command in the copy; all that it started has ended when this returns."""
        mark = secrets.token_hex(8)
        kept = {name: value for name, value in os.environ.items() if name not in UNSET}
        data = {"LDP_BAYES_DATA": str(self.root.parent / "shared" / "data")}
        begun = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="mutant-", ignore_cleanup_errors=True) as own:
            with (Path(own) / "said").open("w+b") as said:
                process = subprocess.Popen(
                    command,
                    cwd=self.folder,
                    env=data | kept | {MARK: mark, "TMPDIR": own} | variables,
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
                try:
                    code = process.wait(seconds)
                except subprocess.TimeoutExpired:
                    code = None
                    os.killpg(process.pid, signal.SIGINT)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(SECONDS_TO_END)
                finally:
                    _end(mark)
                    process.wait()
                said.seek(0)
                return Ran(code, said.read().decode(errors="replace"), time.monotonic() - begun)


def _moved(folder: Path, root: Path) -> None:
    """The environments know their own folder: programs, and where the packages are."""
    for environment in filter(Path.is_dir, (folder / name for name in ENVIRONMENTS if name.startswith("."))):
        scripts = [path for path in (environment / "bin").iterdir() if path.is_file() and not path.is_symlink()]
        for path in (*scripts, environment / "pyvenv.cfg", *environment.glob("lib/python*/site-packages/*.pth")):
            old = path.read_bytes()
            new = old.replace(os.fsencode(root), os.fsencode(folder))
            if new != old:
                mode = path.stat().st_mode
                path.unlink()
                path.write_bytes(new)
                path.chmod(mode)


def _end(mark: str) -> None:
    """Kill each process that has the mark in its environment; where there is no /proc, nothing tells which they are."""
    sought = f"{MARK}={mark}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if sought in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)
