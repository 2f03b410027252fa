"""What stands in a package's sources: classes, functions, and what an expression may be."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

Key = tuple[str, str]
"""Module, and qualified name in it."""


@dataclass(frozen=True)
class Thing:
    """An ``instance`` of a class, the ``class`` itself, a ``function``, or ``some`` of a type."""

    kind: str
    key: Key
    note: str = ""
    """For ``some``: the annotation, to be read in the module of ``key``."""


@dataclass
class Class:
    key: Key
    node: ast.ClassDef
    bases: list[Key] = field(default_factory=list)
    methods: dict[str, Key] = field(default_factory=dict)
    attributes: dict[str, tuple[ast.expr, Key | None]] = field(default_factory=dict)
    """Name to an annotation (None), or to an expression with the method that assigns it."""

    @property
    def is_protocol(self) -> bool:
        return any(ast.unparse(base).startswith("Protocol") for base in self.node.bases)


@dataclass
class Function:
    key: Key
    node: ast.FunctionDef | ast.AsyncFunctionDef
    owner: Key | None
    escapes: set[type[BaseException]] = field(default_factory=set)

    def marked(self, decorator: str) -> bool:
        return any(ast.unparse(one).split("(")[0].endswith(decorator) for one in self.node.decorator_list)

    @property
    def is_property(self) -> bool:
        return self.marked("property")
