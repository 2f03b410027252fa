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
        with (
            tempfile.TemporaryDirectory(prefix="m-", ignore_cleanup_errors=True) as own,
            tempfile.TemporaryFile() as said,
        ):
            Path(own).chmod(0o755)  # Tests become users who may read little, and still have to get there.
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
                _end(process, mark)
            said.seek(0)
            return Ran(code, said.read().decode(errors="replace"), time.monotonic() - begun)


def _moved(folder: Path, root: Path) -> None:
    """What is installed and built knows its own folder: programs, and where the packages are."""
    patterns = ("bin/*", "pyvenv.cfg", "lib/python*/site-packages/*.pth")
    found = [path for name in ENVIRONMENTS for pattern in patterns for path in (folder / name).glob(pattern)]
    for path in (*found, *folder.glob("build/swift/checks")):
        if path.is_file() and not path.is_symlink():
            old, mode = path.read_bytes(), path.stat().st_mode
            path.unlink()  # It may be a link to that of the checkout.
            path.write_bytes(old.replace(os.fsencode(root), os.fsencode(folder)))
            path.chmod(mode)


def _end(process: subprocess.Popen, mark: str) -> None:
    """Kill a process with its group, and each other that has the mark in its environment, where /proc tells that."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if f"{MARK}={mark}".encode() in path.read_bytes().split(b"\0"):
                os.kill(int(path.parent.name), signal.SIGKILL)
    process.wait()
