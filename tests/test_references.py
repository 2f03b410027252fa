"""References in docstrings: each names something that there is, so that whoever reads can follow it."""

import ast
import calendar
import re
import subprocess
import unicodedata
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
import yaml
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


# --- sources ---

NAME = r"(?:(?:de|van|von) )?(?![A-Z]{2,}\b)[A-Z][\w'’-]+"
AUTHORS = re.compile(
    rf"(?:[A-Z]\. )?((?:{NAME}(?:,? and |, ))*{NAME})( et al\.)?,? \(?(?:(?:CRYPTO|NDSS|USENIX Security) )?$"
)
"""What stands before the year of a source."""
NO_AUTHORS = {"Since", *calendar.month_name, *calendar.month_abbr}


def plain(name: str) -> str:
    """A family name without accents, as a source file may spell it."""
    return "".join(one for one in unicodedata.normalize("NFD", name) if not unicodedata.combining(one))


def sources() -> dict[tuple[str, int], list[str]]:
    """The family names of the authors in CITATION.cff by the first of them and the year."""
    cited = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))["references"]
    lists = [([plain(one["family-names"]) for one in source["authors"]], source["year"]) for source in cited]
    return {(authors[0], year): authors for authors, year in lists}


def cited_in(text: str) -> Iterator[tuple[list[str], bool, int]]:
    """The lists of authors that stand before a year, whether "et al." ends them, and the year."""
    text = " ".join(re.sub(r"(?m)^\s*(?://+|#|\*)", "", text).split())
    for year in re.finditer(r"\b(?:19|20)\d\d\b(?![-.]?\d)", text):
        found = AUTHORS.search(text[max(0, year.start() - 120) : year.start()])
        if found and (authors := re.split(r",? and |, ", found[1]))[0] not in NO_AUTHORS:
            yield authors, bool(found[2]), int(year[0])


def wrong(authors: list[str], others: bool, known: list[str] | None) -> bool:
    """Whether a list is not that of the source: in full, or the first of three or more and "et al."."""
    if known is None:
        return True
    return len(known) < 3 or authors != known[:1] if others else authors != known


def test_the_authors_of_a_source_are_those_of_the_citation_file_wherever_it_is_named():
    known, found = sources(), []
    listed = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    files = [one for one in listed.split("\n") if one.endswith((".py", ".md", ".ts", ".kt", ".swift"))]
    for file in files:
        if file.startswith(("tests/", "CHANGELOG", "deploy/vectors/")):
            continue
        for authors, others, year in cited_in((REPOSITORY / file).read_text(encoding="utf-8")):
            found.append((file, authors, others, year))
    assert len(found) > 60
    assert [one for one in found if wrong(one[1], one[2], known.get((one[1][0], one[3])))] == []


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("(Marchioro et al. 2022)", True),
        ("Marchioro, Giaretta,\n    # Markatos and Girdzijauskas (2022)", True),
        ("Marchioro, Giannessi, Pappas, Scarmozzino (2022)", False),
        ("Marchioro et al. 2021", False),
        ("Zafarani et al. 2020", False),
        ("(Balle, Bell, Gascon, Nissim, CRYPTO 2019, Lemma 5.3)", True),
        ("Wang et al., NDSS 2020: subtract", True),
        ("(de Jong and Penzer 1998)", True),
        ("Nobody, Else 1999", False),
    ],
)
def test_a_false_list_of_authors_is_found(text, right):
    [(authors, others, year)] = cited_in(text)
    assert wrong(authors, others, sources().get((authors[0], year))) != right
