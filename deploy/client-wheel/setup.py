"""Builds the wheel for devices: the programs of the sources without what only their readers need.

Comments, the layout, and docstrings and types where no app meets them are four tenths of the bytes; they stand in the
sources. Docstrings and types of public names stay in every module whose names ``ldp_client`` and ``protocols`` hand on,
and those of the two packages, so that ``help()`` and editors explain what an app uses.
"""

import ast
import inspect
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
PACKAGES = ("protocols", "ldp_client")
PREFIX = "" if (HERE / "protocols").is_dir() else "../../"
"""A source distribution holds the packages beside this file; in the repository they are two folders up."""

TYPED = {
    "ldp_client.aio",
    "ldp_client.errors",
    "ldp_client.network.transport",
    "ldp_client.storage.contract",
    "protocols.mechanisms.base",
}
"""What an app meets beside the names that the packages hand on."""


def typed_modules(*packages: Path) -> set[str]:
    """Return the modules whose types an app's checker reads: where the names that the packages hand on live."""
    trees = [ast.parse((package / "__init__.pyi").read_text(encoding="utf-8")) for package in packages]
    return TYPED.union(
        node.module for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module
    )


def bare(source: str, *, typed: bool, package: bool) -> str:
    """The same program in fewer bytes."""
    tree = ast.parse(source)
    about = ast.get_docstring(tree) if package else None
    tree = _Bare(typed=typed).visit(tree)
    if about:
        tree.body.insert(0, ast.Expr(ast.Constant(about)))
    if not typed:
        _forget_unused(tree)
    texts = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            name = f"_DOCSTRING_{len(texts)}_"
            texts[name] = repr(inspect.cleandoc(node.value.value))
            node.value = ast.Name(name)
    lines = ast.unparse(ast.fix_missing_locations(tree)).splitlines()
    # What is unparsed has one statement a line, and no text over several.
    program = "".join(" " * ((len(line) - len(line.lstrip())) // 4) + line.lstrip() + "\n" for line in lines if line)
    return re.sub(r"\b_DOCSTRING_\d+_\b", lambda found: texts[found[0]], program)


class _Bare(ast.NodeTransformer):
    """Takes statements that are nothing but a text away (docstrings of public names stay where ``typed``) and, unless
    ``typed``, all types; a class's field keeps the mark of one, and what is no field its type, which are read when the
    program runs.
    """

    def __init__(self, *, typed: bool) -> None:
        self._typed = typed
        self._in_class = False

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        return None if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str) else node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        return self._inside(node, in_class=True)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        before = self._typed
        self._typed = before and (not node.name.startswith("_") or node.name.endswith("__"))
        if not self._typed:
            node.returns = None
            for argument in ast.walk(node.args):
                if isinstance(argument, ast.arg):
                    argument.annotation = None
        node = self._inside(node, in_class=False)
        self._typed = before
        return node

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - the name of its base class

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if self._typed:
            return node
        if self._in_class:
            if not ast.unparse(node.annotation).startswith("ClassVar"):
                node.annotation = ast.Constant(None)
            return node
        return node if node.value is None else ast.copy_location(ast.Assign([node.target], node.value), node)

    def visit_If(self, node: ast.If) -> ast.AST | None:
        self.generic_visit(node)
        if not self._typed and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING" and not node.orelse:
            return None
        return node

    def _inside(self, node, *, in_class):
        kept = self._typed and not node.name.startswith("_") and ast.get_docstring(node)
        before, self._in_class = self._in_class, in_class
        self.generic_visit(node)
        self._in_class = before
        if kept:
            node.body.insert(0, ast.Expr(ast.Constant(kept)))
        node.body = node.body or [ast.Expr(ast.Constant(...))]
        return node


def _forget_unused(tree: ast.Module) -> None:
    """Names that were imported for types alone. A package's ``__init__``, which hands names on, is typed."""
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if "ClassVar" in used:
        used.add("annotations")
    for node in list(tree.body):
        if isinstance(node, ast.ImportFrom):
            node.names = [name for name in node.names if (name.asname or name.name) in used]
            if not node.names:
                tree.body.remove(node)


class BuildBare(build_py):
    """``build_py`` that leaves out what only a reader of the sources needs."""

    def build_module(self, module: str, module_file: str, package: str) -> tuple[str, bool]:
        target, copied = super().build_module(module, module_file, package)
        built = Path(target)
        name = package if module == "__init__" else f"{package}.{module}"
        roots = [Path(folder) for folder in self.distribution.package_dir.values()]
        package = module == "__init__"
        typed = package or name in typed_modules(*roots)
        built.write_text(bare(built.read_text(encoding="utf-8"), typed=typed, package=package), encoding="utf-8")
        return target, copied


class SdistWithPackages(sdist):
    """``sdist`` that takes the modules that the wheel has along, as they are in the repository."""

    def make_release_tree(self, base_dir: str, files: Sequence[str]) -> None:
        super().make_release_tree(base_dir, [file for file in files if ".." not in Path(file).parts])
        for package in self.distribution.packages or ():
            folder = Path(base_dir, *package.split("."))
            folder.mkdir(parents=True, exist_ok=True)
            for file in (HERE / PREFIX).joinpath(*package.split(".")).iterdir():
                if file.suffix in (".py", ".pyi") or file.name == "py.typed":
                    shutil.copy(file, folder)


setup(
    cmdclass={"build_py": BuildBare, "sdist": SdistWithPackages},
    package_dir={package: PREFIX + package for package in PACKAGES},
)
