"""Bugs at one place of a TypeScript, Kotlin or Swift file, found among its tokens.

Comments, texts with what stands inside of them, regular expressions, imports, annotations and what follows a `throw` on
its line stay. What is a type and no value a scanner cannot tell: the compiler refuses such a mutant, or drops it.
"""

import bisect
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from planting import Mutant

TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)"
    r'|(?P<text>"""|["\'`])'
    r"|(?P<number>(?:0[xX][\da-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)(?:[nLfuU]\b)?)"
    r"|(?P<word>[A-Za-z_$@#][\w$]*)"
    r"|(?P<space>\s+)"
    r"|(?P<sign>===|!==|=>|->|\?\?=|\?\?|\?\.|\?:|\.\.\.|\.\.<|&&|\|\||>>>|<<|>>|[<>=!+*/%&|^-]=|\+\+|--|!!|.)",
    re.DOTALL,
)
SIGNS = {
    "==": ("other comparison", "!="),
    "!=": ("other comparison", "=="),
    "===": ("other comparison", "!=="),
    "!==": ("other comparison", "==="),
    "<": ("moved boundary", "<="),
    "<=": ("moved boundary", "<"),
    ">": ("moved boundary", ">="),
    ">=": ("moved boundary", ">"),
    "&&": ("other connective", "||"),
    "||": ("other connective", "&&"),
    "+": ("other arithmetic", "-"),
    "-": ("other arithmetic", "+"),
    "*": ("other arithmetic", "/"),
    "/": ("other arithmetic", "*"),
    "%": ("other arithmetic", "/"),
    "<<": ("other arithmetic", ">>"),
    ">>": ("other arithmetic", "<<"),
    "+=": ("other arithmetic", "-="),
    "-=": ("other arithmetic", "+="),
}
"""Signs between spaces, as all three are formatted: without them `<` opens type arguments and `-` is a number's."""
WORDS = {
    "true": ("other constant", "false"),
    "false": ("other constant", "true"),
    "min": ("opposite function", "max"),
    "max": ("opposite function", "min"),
    "some": ("opposite function", "every"),
    "every": ("opposite function", "some"),
    "any": ("opposite function", "all"),
    "all": ("opposite function", "any"),
    "startsWith": ("opposite function", "endsWith"),
    "hasPrefix": ("opposite function", "hasSuffix"),
    "shl": ("other arithmetic", "shr"),
    "shr": ("other arithmetic", "shl"),
}
KEPT = re.compile(r"\s*(?:import|package|export (?:\*|\{|type)|type|interface|@|#)\b|.*\bfrom \"")
"""A line on which nothing is changed."""
THROWN = re.compile(r"\bthrow\b|\bfatalError\b|\bprecondition\w*\b|\brequire\(|\bcheck\(")
STATEMENT = re.compile(
    r"\s*(?!return\b|throw\b|super\b|else\b|case\b)(?:await |try )*[\w.?!]+\(.*\);?\s*"
    r"|\s*(?:continue|break|return);?\s*"
)
ACTING = re.compile(r"\s*(?:this|self|state)\.[\w.]+ [+-]?= [^{(]*;?\s*")
"""An assignment that others see."""
ENDED = (";", "{", "}", "->")
OPEN, CLOSED = ("(", "[", "{"), (")", "]", "}")


class Token(NamedTuple):
    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def mutants(path: str, text: str) -> list[Mutant]:
    """Every mutant of a file; its name tells the language."""
    tokens = list(scanned(text, path.rpartition(".")[2]))
    begins = [0, *(match.end() for match in re.finditer("\n", text))]
    lines = text.splitlines()
    found = []
    for kind, start, end, new in (
        *_at_tokens(tokens),
        *_conditions(text, tokens),
        *_arguments(tokens),
        *_statements(tokens, lines, begins),
    ):
        line = text.count("\n", 0, start)
        before = lines[line][: start - begins[line]]
        if not KEPT.match(lines[line]) and not THROWN.search(before):
            found.append(Mutant(path, line + 1, kind, start, end, new))
    return found


def scanned(text: str, language: str, at: int = 0) -> Iterator[Token]:
    """The tokens from a place on, without spaces and comments. A text or regular expression is one token, with all that
    stands in it.
    """
    last = ""
    while at < len(text):
        found = TOKEN.match(text, at)
        kind, end = found.lastgroup, found.end()
        if kind == "text":
            end = _end_of_text(text, at, found.group(), language)
        elif found.group() in ("/", "/=") and language == "ts" and not re.search(r"[\w$)\]]$", last):
            pattern = re.compile(r"/(?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\n])+/[a-z]*").match(text, at)
            kind, end = ("text", pattern.end()) if pattern else (kind, end)
        if kind not in ("space", "comment"):
            last = text[at:end]
            yield Token(kind, last, at)
        at = end


def _end_of_text(text: str, start: int, quote: str, language: str) -> int:
    """The index behind the text that opens at ``start``; what it takes up may hold texts of its own."""
    opens = {"ts": "${" if quote == "`" else None, "kt": "${", "swift": "\\("}[language]
    at = start + len(quote)
    while not text.startswith(quote, at):
        if opens and text.startswith(opens, at):
            at = _closed(scanned(text, language, at + 1)).end
        else:
            at += 1 + (text[at] == "\\" and len(quote) == 1)
    return at + len(quote)


def _closed(tokens: Iterable[Token]) -> Token:
    """The one that closes what the first opens."""
    depth = 0
    for token in tokens:
        depth += (token.text in OPEN) - (token.text in CLOSED)
        if not depth:
            return token
    raise ValueError("a parenthesis stays open")


def _at_tokens(tokens: list[Token]) -> Iterator[tuple[str, int, int, str]]:
    ends = [Token("space", "", 0)]
    for before, token, after in zip(ends + tokens, tokens, tokens[1:] + ends, strict=False):
        apart = before.end < token.start and token.end < after.start
        texts = "text" in (before.kind, after.kind)
        if token.kind == "sign" and token.text in SIGNS and apart and not (token.text == "+" and texts):
            kind, new = SIGNS[token.text]
            yield kind, token.start, token.end, new
        elif token.kind == "word" and token.text in WORDS and after.text != ":":
            kind, new = WORDS[token.text]
            yield kind, token.start, token.end, new
        elif token.kind == "number" and (number := re.fullmatch(r"(\d+)([nL]?)", token.text)):
            yield "other constant", token.start, token.end, f"{int(number[1]) + 1}{number[2]}"
        elif token.text == "!" and token.end == after.start and (before.kind == "sign" or before.end < token.start):
            yield "removed sign", token.start, token.end, ""
        elif token.text == "await":
            yield "dropped await", token.start, after.start, ""


def _conditions(text: str, tokens: list[Token]) -> Iterator[tuple[str, int, int, str]]:
    """The contrary of what stands in the parentheses of an `if`."""
    for place, (word, opened) in enumerate(pairwise(tokens), 1):
        if word.text == "if" and opened.text == "(":
            closed = _closed(tokens[place:])
            yield "negated condition", opened.end, closed.start, f"!({text[opened.end : closed.start]})"


def _arguments(tokens: list[Token]) -> Iterator[tuple[str, int, int, str]]:
    """Two neighbouring names among the arguments of a call, exchanged."""
    for name, opened, left, comma, right, closed in zip(*(tokens[place:] for place in range(6)), strict=False):
        called = name.kind == "word" and opened.text == "(" and opened.start == name.end
        if called and left.kind == right.kind == "word" and comma.text == "," and closed.text in (",", ")"):
            yield "swapped arguments", left.start, right.end, f"{right.text}, {left.text}"


def _statements(tokens: list[Token], lines: list[str], begins: list[int]) -> Iterator[tuple[str, int, int, str]]:
    """A statement on a line of its own that acts on something else, left out."""
    whole = {}
    for token in tokens:
        line = _line(token.start, begins)
        whole.setdefault(line, []).append(token)
    previous = ""
    for line in sorted(whole):
        code = lines[line][: whole[line][-1].end - begins[line]]
        depth = sum((token.text in OPEN) - (token.text in CLOSED) for token in whole[line])
        if depth == 0 and (STATEMENT.fullmatch(code) or ACTING.fullmatch(code)) and _ends(previous):
            start = begins[line] + len(code) - len(code.lstrip())
            yield "dropped statement", start, begins[line] + len(code), ""
        previous = code


def _line(start: int, begins: list[int]) -> int:
    return bisect.bisect_right(begins, start) - 1


def _ends(code: str) -> bool:
    """The line before has ended, whose statement is another."""
    return not code or code.rstrip().endswith(ENDED) or re.search(r"[\w)\]]$", code.rstrip()) is not None
