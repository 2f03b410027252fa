"""A lock that survives fork: the child starts with it free, whoever held it in the parent."""

from __future__ import annotations

import os
import threading
from types import TracebackType


class ForkSafeLock:
    """A non-reentrant lock. Only the thread that forked exists in the child, and it holds none of these."""

    __slots__ = ("_lock", "_process")

    def __init__(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()

    def acquire(self, timeout: float = -1) -> bool:
        """Take the lock; False when ``timeout`` seconds pass first."""
        if self._process != os.getpid():
            self._lock = threading.Lock()
            self._process = os.getpid()
        return self._lock.acquire(timeout=timeout)

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
