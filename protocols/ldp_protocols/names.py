"""Names that a package hands on, each written once, in its stub, and loaded when it is first used; and its version."""

from __future__ import annotations

import sys
from importlib import import_module

# Type checkers know the name. To import it from typing would take most of the time that importing this takes.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec


DISTRIBUTION = "ldp-bayes-client"
"""It is in every installation, and ldp-bayes takes it in its own version only."""


def lazy_names(package: ModuleSpec) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """``__all__``, ``__getattr__`` and ``__dir__`` of a package with this ``__spec__``, by its ``__init__.pyi``,
    which type checkers read: lines ``from MODULE import NAME as NAME``.
    """
    folder = (package.submodule_search_locations or [""])[0]
    stub: bytes = package.loader.get_data(f"{folder}/__init__.pyi")  # type: ignore[union-attr]
    lines = [line.split() for line in stub.decode().splitlines()]
    homes = {words[3]: words[1] for words in lines if words[:1] == ["from"]}

    def load(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version

            return version(DISTRIBUTION)
        if name not in homes:
            raise AttributeError(f"module {package.name!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package.name], name, value)
        return value

    return sorted(homes), load, lambda: sorted({*vars(sys.modules[package.name]), *homes} - {"lazy_names"})
