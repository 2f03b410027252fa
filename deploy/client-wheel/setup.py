"""Builds the wheel for devices: ``protocols``, of which an app calls nothing but what ``ldp_client`` hands on, travels
without its docstrings, which are a third of its bytes. Lines keep their numbers.
"""

import ast
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

BARE = "protocols"
"""The package, with all below it, that travels without docstrings."""


def without_docstrings(source: str) -> str:
    """The same program: every statement that is nothing but a text becomes blank lines."""
    lines = source.splitlines()
    for parent in ast.walk(ast.parse(source)):
        body = getattr(parent, "body", None)
        texts = [node for node in body if _is_text(node)] if isinstance(body, list) else []
        for node in texts:
            alone = len(texts) == len(body) and not isinstance(parent, ast.Module)
            lines[node.lineno - 1] = " " * node.col_offset + "..." if alone else ""
            lines[node.lineno : node.end_lineno] = [""] * (node.end_lineno - node.lineno)
    return "\n".join(lines).rstrip() + "\n"


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


class BuildBare(build_py):
    """``build_py`` that leaves out docstrings of :data:`BARE`."""

    def build_module(self, module: str, module_file: str, package: str) -> tuple[str, bool]:
        target, copied = super().build_module(module, module_file, package)
        if package.partition(".")[0] == BARE:
            built = Path(target)
            built.write_text(without_docstrings(built.read_text(encoding="utf-8")), encoding="utf-8")
        return target, copied


setup(cmdclass={"build_py": BuildBare})
