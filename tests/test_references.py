"""References in docstrings: each names something that there is, so that whoever reads can follow it."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from installing import REPOSITORY

PACKAGES = {"ldp_client": "", "ldp_protocols": "protocols", "ldp_aggregator": "", "ldp_simulations": "simulations"}
REFERENCE = re.compile(r":(?:mod|class|func|data|meth|attr|exc):`~?([^`]*)`|``(ldp_\w+\.[\w.]+)``")
"""A role of Sphinx, or a dotted name of ours in the type of code."""
NOT_INSTALLED = {"diffprivlib", "flwr"}
"""Libraries that have environments of their own."""


def modules_of(package: str) -> dict[str, Path]:
    folder = REPOSITORY / PACKAGES[package]
    files = (file.relative_to(folder) for file in (folder / package).rglob("*.py"))
    return {".".join(file.with_suffix("").parts).removesuffix(".__init__"): folder / file for file in files}


def texts_of(tree: ast.Module, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every text that stands alone, the docstrings among them, with the classes and functions around it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield place, node.value.value
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from texts_of(node, (*place, node.name))
        else:
            yield from texts_of(node, place)


def has(owner: object, names: list[str]) -> bool:
    """Whether following the names one by one leads anywhere; a field without a default is an annotation alone."""
    for position, name in enumerate(names):
        annotated = any(name in vars(one).get("__annotations__", {}) for one in getattr(owner, "__mro__", ()))
        if annotated and not hasattr(owner, name):
            return position == len(names) - 1
        if not hasattr(owner, name):
            return False
        owner = getattr(owner, name)
    return True


def leads_somewhere(reference: str, module: ModuleType, place: tuple[str, ...]) -> bool:
    """Whether a reference in a text names a member of a class around it, of the module, or of a module it spells."""
    names = reference.removesuffix("()").split(".")
    if any(has(module, [*place[:depth], *names]) for depth in range(len(place) + 1)):
        return True
    for depth in range(len(names), 0, -1):
        try:
            spelled = import_module(".".join(names[:depth]))
        except ModuleNotFoundError:
            continue
        return has(spelled, names[depth:])
    return False


@pytest.mark.parametrize("package", PACKAGES)
def test_every_reference_in_a_docstring_names_something_that_there_is(package):
    dangling, seen = [], 0
    for name, file in modules_of(package).items():
        text = file.read_text(encoding="utf-8")
        if "`" not in text:
            continue
        try:
            module = import_module(name)
        except ModuleNotFoundError as error:
            if error.name not in NOT_INSTALLED:
                raise
            continue
        for place, told in texts_of(ast.parse(text)):
            references = [role or name for role, name in REFERENCE.findall(told)]
            seen += len(references)
            dangling += [(name, one) for one in references if not leads_somewhere(one, module, place)]
    assert not dangling, dangling
    assert seen
