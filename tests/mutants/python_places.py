"""All bugs that can be planted at one place of a Python module, found in its syntax tree.

The tree says where a change is one, the text is changed: what surrounds the place stays as it was written. Docstrings,
annotations, decorators, imports, assertions, what is logged, the words of errors and of ``__repr__`` stay.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from planting import Mutant

NEGATED = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", ">="),
    ast.GtE: (">=", "<"),
    ast.Gt: (">", "<="),
    ast.LtE: ("<=", ">"),
    ast.In: (r"in\b", "not in"),
    ast.NotIn: (r"not\s+in\b", "in"),
    ast.Is: (r"is\b", "is not"),
    ast.IsNot: (r"is\s+not\b", "is"),
}
"""How each comparison is written, and its contrary."""
SHIFTED = {ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">")}
SWAPPED = {
    ast.Add: (r"\+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: (r"\*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.Pow: (r"\*\*", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: (r"\|", "&"),
    ast.BitXor: (r"\^", "|"),
}
OPPOSITES = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "floor": "ceil",
    "ceil": "floor",
    "startswith": "endswith",
    "endswith": "startswith",
    "lower": "upper",
    "upper": "lower",
}
LOGS = {"log", "logger", "logging", "warnings"}
"""The first word of a call that tells an operator something, without leading underscores, in small letters."""
TEXTS = {"help", "metavar", "description", "title", "summary", "doc", "extra", "msg", "message"}
"""Names of arguments that people read."""
ELSEWHERE = re.compile(r"\bTYPE_CHECKING\b|\bsys\.(?:platform|version_info)\b|\bos\.name\b")
"""A condition that another machine, Python or program decides."""

Edit = tuple[str, int, int, str]
"""The kind of a change, the span that it replaces, and what it puts there."""


def mutants(path: str, text: str) -> list[Mutant]:
    """Every mutant of a module."""
    source = _Source(text)
    found = []
    for node, function in _changeable(ast.parse(text)):
        for kind, start, end, new in source.edits(node, function):
            if text[start:end] != new:
                found.append(Mutant(path, text.count("\n", 0, start) + 1, kind, start, end, new, function))
    return found


def _changeable(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Every node that may be changed, with the qualified name of the function around it."""
    open_ = [(child, "", "") for child in tree.body]
    while open_:
        node, function, scope = open_.pop()
        if _is_kept(node):
            continue
        yield node, function
        if isinstance(node, ast.ClassDef):
            open_ += [(child, function, f"{scope}{node.name}.") for child in node.body]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{scope}{node.name}"
            defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
            open_ += [(child, name, f"{name}.<locals>.") for child in (*defaults, *node.body)]
        else:
            open_ += [(child, function, scope) for child in _inner(node)]


def _is_kept(node: ast.AST) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom | ast.Assert | ast.JoinedStr):
        return True
    if isinstance(node, ast.If) and ELSEWHERE.search(ast.unparse(node.test)):
        return True
    if isinstance(node, ast.FunctionDef) and node.name == "__repr__":
        return True
    called = node.value if isinstance(node, ast.Expr) else None
    if isinstance(called, ast.Call):
        return re.split(r"\W", ast.unparse(called.func))[0].strip("_").lower() in LOGS
    return isinstance(called, ast.Constant)


def _inner(node: ast.AST) -> Iterator[ast.AST]:
    """What of a node's parts may be changed."""
    if isinstance(node, ast.Raise):
        return
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "ctx"):
            continue
        for child in value if isinstance(value, list) else [value]:
            is_text = isinstance(child, ast.keyword) and child.arg in TEXTS
            is_type = isinstance(node, ast.Call) and _name(node.func) == "cast" and child is node.args[0]
            if isinstance(child, ast.AST) and not is_text and not is_type:
                yield child


def _name(node: ast.AST) -> str:
    """The last word of a name or of an attribute."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


@dataclass
class _Source:
    text: str

    def __post_init__(self) -> None:
        self._begins = [0]
        for line in self.text.splitlines(keepends=True):
            self._begins.append(self._begins[-1] + len(line))
        self._lines = self.text.splitlines()

    def _at(self, line: int, column: int) -> int:
        """The index of a place that the tree gives in bytes of UTF-8."""
        return self._begins[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def span(self, node: ast.AST) -> tuple[int, int]:
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def of(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def edits(self, node: ast.AST, function: str) -> Iterator[Edit]:
        kinds = KINDS.get(type(node), ())
        for kind, edits in kinds:
            for start, end, new in edits(self, node, function):
                yield kind, start, end, new

    def operator(
        self, whole: ast.AST, left: ast.AST, right: ast.AST, written: tuple[str, str]
    ) -> Iterator[tuple[int, int, str]]:
        """Another operator between two operands, in parentheses: it may bind otherwise than the old one."""
        (first, last), between = self.span(whole), (self.span(left)[1], self.span(right)[0])
        found = re.compile(written[0]).search(self.text, *between)
        if found:
            sides = (left, self.text[first : found.start()].strip()), (right, self.text[found.end() : last].strip())
            one, other = (f"({text})" if isinstance(side, ast.BinOp) else text for side, text in sides)
            yield first, last, f"({one} {written[1]} {other})"


def _compared(table: dict[type, tuple[str, str]]):
    def edits(source: _Source, node: ast.Compare, _: str) -> Iterator[tuple[int, int, str]]:
        operands = [node.left, *node.comparators]
        for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
            if type(operator) in table:
                between = source.span(left)[1], source.span(right)[0]
                pattern, new = table[type(operator)]
                found = re.compile(pattern).search(source.text, *between)
                if found:
                    yield *found.span(), new

    return edits


def _boolean(source: _Source, node: ast.BoolOp, _: str) -> Iterator[tuple[int, int, str]]:
    """One connective of the other kind: all of them where there are several would be several places."""
    if len(node.values) == 2:
        written = (r"\band\b", "or") if isinstance(node.op, ast.And) else (r"\bor\b", "and")
        yield from source.operator(node, *node.values, written)


def _arithmetic(source: _Source, node: ast.BinOp, function: str) -> Iterator[tuple[int, int, str]]:
    texts = any(
        isinstance(part, ast.JoinedStr) or (isinstance(part, ast.Constant) and isinstance(part.value, str | bytes))
        for part in (node.left, node.right)
    )
    a_type = isinstance(node.op, ast.BitOr) and not function
    if not texts and not a_type:
        yield from source.operator(node, node.left, node.right, SWAPPED.get(type(node.op), ("$^", "")))


def _augmented(source: _Source, node: ast.AugAssign, _: str) -> Iterator[tuple[int, int, str]]:
    pattern, new = SWAPPED.get(type(node.op), ("$^", ""))
    found = re.compile(pattern + "=").search(source.text, source.span(node.target)[1], source.span(node.value)[0])
    if found and not isinstance(node.value, ast.JoinedStr):
        yield *found.span(), f"{new}="


def _unary(source: _Source, node: ast.UnaryOp, _: str) -> Iterator[tuple[int, int, str]]:
    start, end = source.span(node)
    if isinstance(node.op, ast.Not) or (isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant)):
        yield start, end, f"({source.of(node.operand)})"


def _condition(source: _Source, node: ast.If | ast.While | ast.IfExp, _: str) -> Iterator[tuple[int, int, str]]:
    negated = isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not)
    if not negated and not isinstance(node.test, ast.Compare | ast.Constant | ast.NamedExpr):
        yield *source.span(node.test), f"(not ({source.of(node.test)}))"


def _constant(source: _Source, node: ast.Constant, _: str) -> Iterator[tuple[int, int, str]]:
    span = source.span(node)
    if isinstance(node.value, bool):
        yield *span, str(not node.value)
    elif isinstance(node.value, int):
        yield *span, str(node.value + 1)
        if node.value > 0:
            yield *span, str(node.value - 1)
    elif isinstance(node.value, float):
        yield *span, repr(2 * node.value or 1.0)


def _opposite(source: _Source, node: ast.Call, _: str) -> Iterator[tuple[int, int, str]]:
    name = _name(node.func)
    if name in OPPOSITES:
        end = source.span(node.func)[1]
        yield end - len(name), end, OPPOSITES[name]


def _arguments(source: _Source, node: ast.Call, _: str) -> Iterator[tuple[int, int, str]]:
    if _name(node.func) == "cast" or any(isinstance(one, ast.Starred | ast.JoinedStr) for one in node.args):
        return
    for left, right in zip(node.args, node.args[1:], strict=False):
        if source.of(left) != source.of(right) and not isinstance(right, ast.GeneratorExp):
            (start, middle), (other, end) = source.span(left), source.span(right)
            yield start, end, source.of(right) + source.text[middle:other] + source.of(left)


def _keyword(source: _Source, node: ast.Call, _: str) -> Iterator[tuple[int, int, str]]:
    for keyword in node.keywords:
        if keyword.arg is not None and keyword.arg not in TEXTS:
            start, end = source.span(keyword)
            after = re.compile(r"\s*,").match(source.text, end)
            before = source.text.rfind(",", source.span(node.func)[1], start)
            if after:
                yield start, after.end(), ""
            elif before >= 0 and not source.text[before + 1 : start].strip():
                yield before, end, ""


def _statement(source: _Source, node: ast.stmt, function: str) -> Iterator[tuple[int, int, str]]:
    """Nothing in place of what acts on something else."""
    of = node.value if isinstance(node, ast.Expr | ast.Return | ast.Assign) else None
    acts = {
        ast.Expr: isinstance(of, ast.Call | ast.Await),
        ast.Return: of is None,
        ast.Assign: all(isinstance(one, ast.Attribute | ast.Subscript) for one in getattr(node, "targets", ()))
        and not function.endswith("__init__"),
    }
    if acts.get(type(node), True):
        yield *source.span(node), "pass"


def _return(source: _Source, node: ast.Return, _: str) -> Iterator[tuple[int, int, str]]:
    if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
        yield *source.span(node), "return None"


def _await(source: _Source, node: ast.Expr, _: str) -> Iterator[tuple[int, int, str]]:
    if isinstance(node.value, ast.Await):
        yield *source.span(node), source.of(node.value.value)


def _caught(source: _Source, node: ast.ExceptHandler, _: str) -> Iterator[tuple[int, int, str]]:
    """One of several kinds is caught no more, or the only one."""
    if isinstance(node.type, ast.Tuple):
        kinds = [source.of(one) for one in node.type.elts]
        for dropped in range(len(kinds)):
            yield *source.span(node.type), f"({', '.join(kinds[:dropped] + kinds[dropped + 1 :])},)"
    elif node.type is not None:
        yield *source.span(node.type), "ZeroDivisionError"


def _raised(source: _Source, node: ast.Raise, _: str) -> Iterator[tuple[int, int, str]]:
    if isinstance(node.exc, ast.Call) and _name(node.exc.func) not in ("", "RuntimeError", "NotImplementedError"):
        yield *source.span(node.exc), 'RuntimeError("another")'


_DROPPED = ("dropped statement", _statement)
KINDS = {
    ast.Compare: [("other comparison", _compared(NEGATED)), ("moved boundary", _compared(SHIFTED))],
    ast.BoolOp: [("other connective", _boolean)],
    ast.BinOp: [("other arithmetic", _arithmetic)],
    ast.AugAssign: [("other arithmetic", _augmented), _DROPPED],
    ast.UnaryOp: [("removed sign", _unary)],
    ast.If: [("negated condition", _condition)],
    ast.While: [("negated condition", _condition)],
    ast.IfExp: [("negated condition", _condition)],
    ast.Constant: [("other constant", _constant)],
    ast.Call: [("opposite function", _opposite), ("swapped arguments", _arguments), ("dropped argument", _keyword)],
    ast.Expr: [_DROPPED, ("dropped await", _await)],
    ast.Assign: [_DROPPED],
    ast.Delete: [_DROPPED],
    ast.Continue: [_DROPPED],
    ast.Break: [_DROPPED],
    ast.Raise: [_DROPPED, ("other exception", _raised)],
    ast.Return: [_DROPPED, ("dropped result", _return)],
    ast.ExceptHandler: [("other exception", _caught)],
}
"""The kinds of change at each kind of node."""
