"""Builds the wheel for devices: it travels without docstrings and comments, which are a third of its bytes and stand in
the sources, in docs/client.md and in ldp-bayes. Lines keep their numbers.
"""

import ast
import io
import tokenize
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


def bare(source: str) -> str:
    """The same program: comments, and every statement that is nothing but a text, become blank lines."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            line, column = token.start
            lines[line - 1] = lines[line - 1][:column].rstrip()
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
    """``build_py`` that leaves out what only a reader of the sources needs."""

    def build_module(self, module: str, module_file: str, package: str) -> tuple[str, bool]:
        target, copied = super().build_module(module, module_file, package)
        built = Path(target)
        built.write_text(bare(built.read_text(encoding="utf-8")), encoding="utf-8")
        return target, copied


setup(cmdclass={"build_py": BuildBare})
