"""Names that a package hands on, each written once and loaded when it is first used."""

from __future__ import annotations

import builtins
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

_ONE_AT_A_TIME = threading.RLock()


@contextmanager
def loaded_on_use(package: dict[str, object]) -> Iterator[None]:
    """Put off a block's imports into a package, each of them ``from MODULE import NAME as NAME``.

    To type checkers and bundlers they are imports like any other. Running, the block only takes note of them; a module
    is loaded when somebody asks the package, whose ``globals()`` these are, for a name of it. ``__all__`` has them all.
    """
    homes: dict[str, str] = {}

    def note(
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002 - the names of the function that it stands in for
        locals: Mapping[str, object] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = None,
        level: int = 0,
    ) -> ModuleType:
        if globals is not package:
            return load_now(name, globals, locals, fromlist, level)
        noted = ModuleType(name)
        noted.__dict__.update(dict.fromkeys(fromlist or ()))
        homes.update(dict.fromkeys(fromlist or (), name))
        return noted

    with _ONE_AT_A_TIME:
        load_now, builtins.__import__ = builtins.__import__, note
        try:
            yield
        finally:
            builtins.__import__ = load_now

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}")
        package[name] = value = getattr(import_module(homes[name]), name)
        return value

    for name in homes:
        del package[name]
    package.update(__all__=sorted(homes), __getattr__=load, __dir__=lambda: sorted({*package, *homes}))
