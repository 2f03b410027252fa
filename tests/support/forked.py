"""Interpreters that have imported already: `python` and the commands as forks of one process.

A command of the aggregator imports for a third of a second to a second and a half, and tests start hundreds of them.
The programs in ``programs()`` hand their arguments, folder, environment and standard streams to a process that has
imported all of it and forks: what runs has a process, an environment and an exit code of its own, as any other. Tests
of imports and of memory take ``sys.executable``; ``python`` with an option (``-c``, ``-W``) is that one. SIGQUIT kills
what runs as SIGKILL does: a program that is itself killed has ended before what it stood for.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from pathlib import Path
from typing import NoReturn

PROGRAMS = ("python", "ldp-aggregator", "ldp-client", "ldp-relay", "ldp-simulate")
PACKAGES = ("ldp_protocols", "ldp_client", "ldp_aggregator", "ldp_simulations")
LIBRARIES = ("matplotlib.pyplot", "sklearn.model_selection", "sklearn.naive_bayes")
STUB = """#!{python} -IS
import json, os, signal, sys
real = os.path.join({real!r}, os.path.basename(sys.argv[0]))
words = sys.argv[1:] if real.endswith("/python") else [real, *sys.argv[1:]]
if not words or (words[0] != "-m" and not os.path.isfile(words[0])):
    os.execv(real, [real, *words])
import _socket
link = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
link.connect({address!r})
asked = json.dumps([words, os.getcwd(), dict(os.environ)]).encode()
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
link.sendmsg([len(asked).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
while asked:
    asked = asked[link.send(asked) :]
def hand_on(number, _):
    try:
        link.send(bytes([signal.SIGKILL if number == signal.SIGQUIT else number]))
    except OSError:
        pass  # It has ended already.
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, hand_on)
code = int(link.recv(8) or -signal.SIGKILL)
if code < 0:
    if code != -signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
"""
"""Starts in hundredths of a second. A signal is handed on; what runs dies with it."""


@functools.cache
def programs() -> Path:
    """The folder with the programs; as the first of a PATH it stands for the environment's own."""
    folder = Path(tempfile.mkdtemp(prefix="ldp-forked-"))
    real = str(Path(sys.executable).parent)
    for name in PROGRAMS:
        (folder / name).write_text(STUB.format(python=sys.executable, real=real, address=str(folder / "socket")))
        (folder / name).chmod(0o755)
    paths = [str(Path(__file__).resolve().parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    parent = subprocess.Popen(
        [sys.executable, __file__, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)},
    )
    atexit.register(parent.communicate)
    assert parent.stdout.readline() == b"ready\n"
    return folder


def _import_all() -> None:
    for name in LIBRARIES:
        importlib.import_module(name)
    for package in PACKAGES:
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
            # A program's own module is run, not imported; Flower and its like are not installed.
            if not module.name.endswith("__main__"):
                with contextlib.suppress(ImportError):
                    importlib.import_module(module.name)
    gc.collect()
    gc.freeze()


def _connection(listener: socket.socket) -> socket.socket | None:
    """The connection that this process, a fork, is to answer; None in the parent, whose standard input has ended."""
    while True:
        readable, _, _ = select.select([0, listener], [], [], 1)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if 0 in readable:
            return None
        if listener in readable:
            link, _ = listener.accept()
            if os.fork() == 0:
                return link
            link.close()


def _as_asked(link: socket.socket) -> list[str]:
    """Fork once more: the parent hands signals on and tells the exit code, the child has what the program had."""
    length, streams, _, _ = socket.recv_fds(link, 4, 3)
    size, received = int.from_bytes(length, "big"), bytearray()
    # No further: signals follow.
    while part := link.recv(min(1 << 16, size - len(received))):
        received += part
    if not size or len(received) < size:
        os._exit(0)  # Whoever asked was killed.
    words, folder, environment = json.loads(received)

    def tell(*_: object) -> None:
        _, status = os.wait()
        with contextlib.suppress(OSError):
            link.send(str(os.waitstatus_to_exitcode(status)).encode())
        os._exit(0)

    signal.signal(signal.SIGCHLD, tell)
    child = os.fork()
    if child:
        for stream in streams:
            os.close(stream)
        with contextlib.suppress(ConnectionError):
            while number := link.recv(1):
                os.kill(child, number[0])
        os.kill(child, signal.SIGKILL)
        while True:
            signal.pause()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    link.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    if environment.get("PYTHONUNBUFFERED"):
        sys.stdout = io.TextIOWrapper(os.fdopen(1, "wb", buffering=0, closefd=False), write_through=True)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    return words


def main(folder: Path) -> None:
    sys.executable = str(folder / "python")
    _import_all()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket"))
        listener.listen(100)
        os.write(1, b"ready\n")
        link = _connection(listener)
    if link is None:
        shutil.rmtree(folder)
        return
    words = _as_asked(link)
    try:
        if words[0] == "-m":
            sys.argv, sys.path[0] = words[1:], str(Path.cwd())
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv, sys.path[0] = words, str(Path(words[0]).resolve().parent)
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as end:
        _exit(end.code)
    except BaseException:
        traceback.print_exc()
        _exit(1)
    _exit(0)


def _exit(code: int | str | None) -> NoReturn:
    """As an interpreter ends, but that nothing imported is taken down: that lasts three times as long as a start."""
    if isinstance(code, str):
        print(code, file=sys.stderr)
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
