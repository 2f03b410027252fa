"""Which exceptions leave which functions of a package: read off the sources, by who raises, who calls and who catches.

Types come from the annotations, which mypy checks: of parameters, attributes, results and fields. A call on a protocol
or a base class reaches whatever in the packages may be behind it. What cannot be resolved (another library, a callback)
is taken to raise nothing: an exception that is found does leave, one that is not found may.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from sources import Class, Function, Key, Thing

_CONTAINERS = {"list", "tuple", "Sequence", "Iterator", "Iterable", "frozenset", "set", "AbstractContextManager"}
_MAPS = {"dict", "Mapping"}


class Program:
    """All modules of packages below a folder, but for the ``apart`` ones. What the ``kept`` functions raise goes to
    nobody: who calls them has seen to it.
    """

    def __init__(
        self, root: Path, *packages: str, apart: tuple[str, ...] = (), kept: frozenset[Key] = frozenset()
    ) -> None:
        self.classes: dict[Key, Class] = {}
        self.functions: dict[Key, Function] = {}
        self.names: dict[str, dict[str, Any]] = {}
        self.kept = kept
        self.resolved = 0
        self._known: dict[tuple[Key, str], list[Thing]] = {}
        self._bodies: dict[Key, _Body] = {}
        self._behind: dict[Key, list[Class]] = {}
        for package in packages:
            for path in sorted((root / package).rglob("*.py")):
                module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
                if not module.startswith(apart):
                    self._read(module, ast.parse(path.read_text(encoding="utf-8")))
        for one in self.classes.values():
            found = [self.things(base, one.key[0], {}) for base in one.node.bases]
            one.bases = [thing.key for things in found for thing in things if thing.kind == "class"]
        changed = True
        while changed:
            changed = False
            for function in self.functions.values():
                before = len(function.escapes)
                function.escapes |= self.body(function).escapes(function.node.body)
                changed |= len(function.escapes) > before

    def _read(self, module: str, tree: ast.Module) -> None:
        names = self.names.setdefault(module, {})
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    names[alias.asname or alias.name] = (node.module, alias.name)
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                self._read_class(module, node)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                key = names[node.name] = (module, node.name)
                self.functions[key] = Function(key, node, None)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                if isinstance(target, ast.Name):
                    names[target.id] = node.value

    def _read_class(self, module: str, node: ast.ClassDef) -> None:
        key = self.names[module][node.name] = (module, node.name)
        made = self.classes[key] = Class(key, node)
        for item in node.body:
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                made.attributes[item.target.id] = (item.annotation, None)
            elif isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
                setter = any(ast.unparse(one).endswith(".setter") for one in item.decorator_list)
                name = f"{item.name}.setter" if setter else item.name
                own = (module, f"{node.name}.{name}")
                made.methods[name] = own
                self.functions[own] = Function(own, item, key)
                for inner in ast.walk(item):
                    if isinstance(inner, ast.AnnAssign) and _of_self(inner.target):
                        made.attributes.setdefault(inner.target.attr, (inner.annotation, None))  # type: ignore[union-attr]
                    elif isinstance(inner, ast.Assign):
                        for target, value in _pairs(inner.targets[0], inner.value):
                            if _of_self(target):
                                made.attributes.setdefault(target.attr, (value, own))  # type: ignore[attr-defined]

    def lookup(self, module: str, name: str) -> Any:
        """A class's or function's key, or the expression that a constant was given."""
        for _ in range(5):
            found = self.names.get(module, {}).get(name)
            if not isinstance(found, tuple) or found in self.classes or found in self.functions:
                return (module, found) if isinstance(found, ast.expr) else found
            module, name = found
        return None

    def lineage(self, key: Key) -> Iterator[Class]:
        """A class and its bases, nearest first."""
        if (one := self.classes.get(key)) is not None:
            yield one
            for base in one.bases:
                yield from self.lineage(base)

    def behind(self, key: Key) -> list[Class]:
        """The classes whose instances may be where one of this class is asked for."""
        if key in self._behind:
            return self._behind[key]
        asked = self.classes[key]
        wanted = {name for name in asked.methods if not name.startswith("_")}
        self._behind[key] = [
            one
            for one in self.classes.values()
            if any(base.key == key for base in self.lineage(one.key))
            or (asked.is_protocol and wanted and wanted <= {n for base in self.lineage(one.key) for n in base.methods})
        ]
        return self._behind[key]

    def members(self, key: Key, name: str) -> list[Function]:
        """The methods that ``name`` may mean on an instance of a class."""
        own = next((one.methods[name] for one in self.lineage(key) if name in one.methods), None)
        keys = {own} | {one.methods[name] for one in self.behind(key) if name in one.methods}
        return [self.functions[one] for one in keys if one is not None]

    def noted(self, annotation: ast.expr | None, module: str, owner: Key | None = None) -> list[Thing]:
        """What an annotation says."""
        if annotation is None:
            return []
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            annotation = ast.parse(annotation.value, mode="eval").body
        if isinstance(annotation, ast.BinOp):
            return self.noted(annotation.left, module, owner) + self.noted(annotation.right, module, owner)
        if isinstance(annotation, ast.Name) and annotation.id == "Self" and owner is not None:
            return [Thing("instance", owner)]
        if isinstance(annotation, ast.Name):
            found = self.lookup(module, annotation.id)
            if found in self.classes:
                return [Thing("instance", found)]
            # An alias, such as ``Task = Send | Wait | Idle``.
            return self.noted(found[1], found[0]) if found and isinstance(found[1], (ast.BinOp, ast.Subscript)) else []
        return [Thing("some", (module, ""), ast.unparse(annotation))]

    def inside(self, thing: Thing) -> list[Thing]:
        """What comes out of a container, or a context."""
        node = ast.parse(thing.note, mode="eval").body if thing.kind == "some" else None
        if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
            return []
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if node.value.id in _CONTAINERS:
            return [one for part in parts for one in self.noted(part, thing.key[0])]
        return self.noted(parts[-1], thing.key[0]) if node.value.id in _MAPS else []

    def things(self, node: ast.expr, module: str, local: dict[str, list[Thing]]) -> list[Thing]:
        """What an expression may be."""
        if isinstance(node, ast.Name):
            if node.id in local:
                return local[node.id]
            found = self.lookup(module, node.id)
            if found in self.classes:
                return [Thing("class", found)]
            if found in self.functions:
                return [Thing("function", found)]
            return self.things(found[1], found[0], {}) if found and isinstance(found[1], ast.Call) else []
        if isinstance(node, ast.Attribute):
            return [one for thing in self.things(node.value, module, local) for one in self._member(thing, node.attr)]
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in {"replace", "sorted", "tuple", "list"} and node.args:
                return self.things(node.args[0], module, local)
            return [one for thing in self.things(node.func, module, local) for one in self._result(thing)]
        if isinstance(node, ast.BoolOp):
            return [one for value in node.values for one in self.things(value, module, local)]
        if isinstance(node, ast.IfExp):
            return self.things(node.body, module, local) + self.things(node.orelse, module, local)
        if isinstance(node, (ast.NamedExpr, ast.Await)):
            return self.things(node.value, module, local)
        if isinstance(node, ast.Subscript):
            return [one for thing in self.things(node.value, module, local) for one in self.inside(thing)]
        return []

    def _member(self, thing: Thing, name: str) -> list[Thing]:
        if thing.kind not in {"instance", "class"}:
            return [thing] if name in {"items", "values"} else []
        methods = self.members(thing.key, name)
        if methods:
            properties = [one for one in methods if one.is_property and thing.kind == "instance"]
            if properties:
                return [one for each in properties for one in self.noted(each.node.returns, each.key[0], each.owner)]
            return [Thing("function", one.key) for one in methods]
        for one in self.lineage(thing.key):
            if name in one.attributes:
                given, method = one.attributes[name]
                if method is None:
                    return self.noted(given, one.key[0], thing.key)
                return self._assigned(one.key, name)
        return []

    def _assigned(self, key: Key, name: str) -> list[Thing]:
        """What an attribute was given in a method; nothing while that is being found out."""
        if (key, name) not in self._known:
            self._known[key, name] = []
            given, method = self.classes[key].attributes[name]
            assert method is not None
            self._known[key, name] = self.things(given, key[0], self.body(self.functions[method]).local)
        return self._known[key, name]

    def body(self, function: Function) -> _Body:
        """The names of a function, found once."""
        if function.key not in self._bodies:
            self._bodies[function.key] = _Body(self, function)
        return self._bodies[function.key]

    def _result(self, thing: Thing) -> list[Thing]:
        if thing.kind == "class":
            return [Thing("instance", thing.key)]
        if thing.kind != "function":
            return []
        function = self.functions[thing.key]
        return self.noted(function.node.returns, thing.key[0], function.owner)

    def called(self, thing: Thing) -> list[Function]:
        """What runs when a thing is called."""
        if thing.kind == "function":
            return [self.functions[thing.key]]
        if thing.kind == "class":
            found = [one.methods.get(name) for name in _MAKERS for one in self.lineage(thing.key)]
            return [self.functions[one] for one in found if one is not None]
        return []


_MAKERS = ("__init__", "__post_init__")


class _Body:
    """The statements of one function, and the names in it."""

    def __init__(self, program: Program, function: Function) -> None:
        self.program, self.function, self.module = program, function, function.key[0]
        self.local: dict[str, list[Thing]] = {}
        arguments = function.node.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            self.local[argument.arg] = program.noted(argument.annotation, self.module, function.owner)
        if function.owner is not None and not function.marked("staticmethod") and arguments.args:
            kind = "class" if function.marked("classmethod") else "instance"
            self.local[arguments.args[0].arg] = [Thing(kind, function.owner)]
        for _ in range(2):
            for node in ast.walk(function.node):
                self._bind(node)

    def _bind(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target, value in _pairs(node.targets[0], node.value):
                self._name(target, self.things(value))
        elif isinstance(node, ast.AnnAssign):
            self._name(node.target, self.program.noted(node.annotation, self.module))
        elif isinstance(node, ast.NamedExpr):
            self._name(node.target, self.things(node.value))
        elif isinstance(node, (ast.For, ast.comprehension)):
            self._name(node.target, [one for thing in self.things(node.iter) for one in self.program.inside(thing)])
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            things = self.things(node.context_expr)
            entered = [one for thing in things for one in (self.program.inside(thing) or [thing])]
            self._name(node.optional_vars, entered)

    def _name(self, target: ast.expr, things: list[Thing]) -> None:
        if isinstance(target, ast.Name):
            known = self.local.setdefault(target.id, [])
            known += [thing for thing in things if thing not in known]
        elif isinstance(target, ast.Tuple):
            for one in target.elts:
                self._name(one, things)

    def things(self, node: ast.expr) -> list[Thing]:
        return self.program.things(node, self.module, self.local)

    def escapes(self, statements: Iterable[ast.AST]) -> set[type[BaseException]]:
        """What leaves some statements."""
        found: set[type[BaseException]] = set()
        for node in statements:
            found |= self._of(node)
        return found

    def _of(self, node: ast.AST) -> set[type[BaseException]]:
        if isinstance(node, ast.Try):
            return self._of_try(node)
        if isinstance(node, ast.Raise):
            return self._raised(node) | self.escapes(ast.iter_child_nodes(node))
        if isinstance(node, ast.With):
            suppressed = [
                one
                for item in node.items
                if isinstance(item.context_expr, ast.Call) and ast.unparse(item.context_expr.func).endswith("suppress")
                for argument in item.context_expr.args
                for one in self._kinds(argument)
            ]
            inner = self.escapes(ast.iter_child_nodes(node))
            return {
                one for one in inner if not any(issubclass(one, kind) or _is_base(one, kind) for kind in suppressed)
            }
        found = self.escapes(ast.iter_child_nodes(node))
        functions: list[Function] = []
        if isinstance(node, ast.Call):
            functions = [one for thing in self.things(node.func) for one in self.program.called(thing)]
        elif isinstance(node, ast.Attribute):
            name = node.attr if isinstance(node.ctx, ast.Load) else f"{node.attr}.setter"
            things = [thing for thing in self.things(node.value) if thing.kind == "instance"]
            found_members = [one for thing in things for one in self.program.members(thing.key, name)]
            functions = [one for one in found_members if one.is_property or name.endswith(".setter")]
        self.program.resolved += len(functions)
        return found.union(*(one.escapes for one in functions if one.key not in self.program.kept))

    def _of_try(self, node: ast.Try) -> set[type[BaseException]]:
        left = self.escapes(node.body)
        found = self.escapes(node.orelse) | self.escapes(node.finalbody)
        for handler in node.handlers:
            kinds = tuple(self._kinds(handler.type)) if handler.type is not None else (BaseException,)
            # A base that is raised for one of its kinds, told apart by an argument, is caught like the kind.
            caught = {one for one in left if any(issubclass(one, kind) or _is_base(one, kind) for kind in kinds)}
            left -= caught
            found |= self.escapes(handler.body)
            again = [
                one
                for one in ast.walk(handler)
                if isinstance(one, ast.Raise)
                and (one.exc is None or (isinstance(one.exc, ast.Name) and one.exc.id == handler.name))
            ]
            found |= caught if again else set()
        return left | found

    def _raised(self, node: ast.Raise) -> set[type[BaseException]]:
        if node.exc is None:
            return set()
        called = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        kinds = self._kinds(called)
        if not kinds:
            kinds = [self._real(thing.key) for thing in self.things(node.exc) if thing.kind == "instance"]
        return {one for one in kinds if not issubclass(one, (AssertionError, NotImplementedError))}

    def _kinds(self, node: ast.expr) -> list[type[BaseException]]:
        if isinstance(node, ast.Tuple):
            return [one for part in node.elts for one in self._kinds(part)]
        things = [thing for thing in self.things(node) if thing.kind == "class"]
        if things:
            return [self._real(thing.key) for thing in things]
        real: Any = getattr(builtins, node.id, None) if isinstance(node, ast.Name) else None
        if isinstance(node, ast.Attribute) and isinstance(node.value, (ast.Name, ast.Attribute)):
            try:
                real = getattr(import_module(ast.unparse(node.value)), node.attr, None)
            except ImportError:
                real = None
        return [real] if isinstance(real, type) and issubclass(real, BaseException) else []

    @staticmethod
    def _real(key: Key) -> type[BaseException]:
        real: type[BaseException] = getattr(import_module(key[0]), key[1])
        return real


def _is_base(one: type[BaseException], kind: type[BaseException]) -> bool:
    return one.__module__ != "builtins" and issubclass(kind, one)


def _of_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts, strict=False))
    return [(target, value)]
