"""Keeps every number that the code has decided, so that none changes unseen.

python tests/support/keep_numbers.py

Of each module of the packages its constants and their containers, as values; defaults of parameters and fields. Of the
clients in other languages the right-hand sides of their constants. All of it goes into ``tests/numbers.json``.
"""

import ast
import dataclasses
import json
import re
from collections.abc import Mapping, Set
from datetime import timedelta
from fractions import Fraction
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STORED = ROOT / "tests" / "numbers.json"
FOLDERS = ("ldp_aggregator", "ldp_client", "protocols/ldp_protocols", "simulations/ldp_simulations")
ELSEWHERE = ("/flower/", "__main__", "diffprivlib")
"""Modules that need an environment of their own, or run when they are imported."""
CLIENTS = {
    "javascript/src/**/*.ts": (
        r"^(?:export )?const ([A-Z]\w*)\b[^=\n]* = ([^;\n]*(?:\d|\bDAY\b|\bHOUR\b)[^;\n]*);",
        r"^  (\w+): ((?:\d+ \* )?(?:SECOND|HOUR|DAY)),$",
    ),
    "kotlin/src/main/kotlin/*.kt": (
        r"^(?:\w+ )*val (\w+)[^=\n]* = ([\d_].*)$",
        r"^ +(?:val )?(\w+): (?:Long|Duration) = (\d.*),$",
    ),
    "swift/Sources/LdpBayes/*.swift": (r"^(?:    public var|    static let|(?:\w+ )*let) (\w+)[^=\n]* = ([\d_].*)$",),
}
MOST = 64
"""Numbers of a container; what has more is a table, which its own tests read."""


def value_of(one):
    """A constant as JSON has it; None for what holds no number."""
    if isinstance(one, bool | int | float):
        return one if abs(one) < 2**53 else repr(one)
    if isinstance(one, timedelta):
        return f"{one.total_seconds():g} s"
    if isinstance(one, Fraction):
        return str(one)
    if dataclasses.is_dataclass(one) and not isinstance(one, type):
        one = {field.name: getattr(one, field.name) for field in dataclasses.fields(one)}
    if isinstance(one, Mapping):
        found = {str(key): value for key, member in one.items() if (value := value_of(member)) is not None}
    elif isinstance(one, list | tuple | Set):
        found = [value for member in one if (value := value_of(member)) is not None]
        found = sorted(found, key=str) if isinstance(one, Set) else found
    else:
        return None
    return found if 0 < len(found) <= MOST else None


def numbers_of(path):
    """The numbers of a module of Python, by name."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    folder = next(folder for folder in FOLDERS[::-1] if f"{folder}/" in f"{path.relative_to(ROOT)}/")
    name = ".".join(path.relative_to((ROOT / folder).parent).with_suffix("").parts).removesuffix(".__init__")
    module, found = import_module(name), {}
    for node in tree.body:
        targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
        for one in (target.id for target in targets if isinstance(target, ast.Name) and target.id.strip("_").isupper()):
            if (value := value_of(getattr(module, one, None))) is not None:
                found[one] = value
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            every, last = [*node.args.posonlyargs, *node.args.args], [*node.args.defaults]
            pairs = zip(every[len(every) - len(last) :], last, strict=True)
            alone = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            given = {f"{node.name}({one.arg})": default for one, default in (*pairs, *alone)}
        elif isinstance(node, ast.ClassDef):
            fields = [one for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)]
            given = {f"{node.name}.{one.target.id}": one.value for one in fields}
        else:
            continue
        found |= {
            name: one.value for name, one in given.items() if isinstance(getattr(one, "value", None), int | float)
        }
    return found


def numbers():
    """The numbers of every file, by file and name; those without any are left out."""
    found = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not any(one in str(path) for one in ELSEWHERE):
                found[str(path.relative_to(ROOT))] = numbers_of(path)
    for files, patterns in CLIENTS.items():
        for path in sorted(ROOT.glob(files)):
            text = path.read_text(encoding="utf-8")
            found[str(path.relative_to(ROOT))] = {
                name: value for one in patterns for name, value in re.findall(one, text, re.MULTILINE)
            }
    return {name: values for name, values in found.items() if values}


if __name__ == "__main__":
    rows = [f"{json.dumps(name)}: {json.dumps(values, ensure_ascii=False)}" for name, values in numbers().items()]
    STORED.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
