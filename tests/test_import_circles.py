"""No module needs one that needs it, in Python or in TypeScript: types and what functions import count, too."""

from __future__ import annotations

import re
from collections.abc import Mapping
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

SCRIPTS = Path(__file__).resolve().parents[1] / "javascript" / "src"


def in_order(needs: Mapping[str, set[str]]) -> list[str]:
    """The modules, each behind those that it needs. Raises CycleError where there is no such order."""
    return list(TopologicalSorter(needs).static_order())


@pytest.mark.parametrize("package", ["protocols", "ldp_client", "simulations"])
def test_modules_of_a_package_need_no_other_in_a_circle(package):
    graph = grimp.build_graph(package)
    needs = {module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules}
    assert package in in_order(needs)


def test_typescript_modules_need_no_other_in_a_circle():
    needs = {
        str(file): {str((file.parent / name).resolve()) for name in re.findall(r'"(\.[^"]+)\.js"', file.read_text())}
        for file in (path.resolve() for path in SCRIPTS.rglob("*.ts"))
    }
    needs = {file.removesuffix(".ts"): others for file, others in needs.items()}
    assert set().union(*needs.values()) <= set(in_order(needs)) == set(needs)
