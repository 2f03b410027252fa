"""Plain pages: how many words all of them have, and how many of their sentences are long."""

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
MOST_WORDS = 30_000
MOST_LONG = 39
LONG = 30
"""Words of a sentence above which it is long."""


def prose(path):
    """A page's text without code blocks, comments, its head, and the tables of figures."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"^( *)(```|~~~).*?^\1\2 *$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!--.*?-->|\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    return re.sub(r"^ *\|.*$", "", text, flags=re.MULTILINE) if path.parent.name == "figures" else text


def sentences(text):
    """Sentences of paragraphs and of items of lists, and of a table's cells."""
    text = re.sub(r"\]\([^)]*\)", "]", text)
    blocks = [[]]
    for line in map(str.strip, text.splitlines()):
        if line.startswith("|"):
            blocks += [[cell] for cell in line.strip("|").split(" | ")]
        elif not line or line.startswith("#"):
            blocks.append([])
        elif item := re.match(r"(?:[*+-]|\d+\.)\s+", line):
            blocks.append([line[item.end() :]])
        else:
            blocks[-1].append(line)
    return [
        one
        for block in blocks
        for one in re.split(r"(?<=[.!?:;])[\"')*_`]*\s+(?=[\"'(*_`\[]*[A-Z0-9`])", " ".join(block))
    ]


def words(text):
    """Tokens with a letter or a digit."""
    return sum(any(map(str.isalnum, token)) for token in text.split())


def test_all_pages_together_have_at_most_thirty_thousand_words():
    assert sum(words(prose(page)) for page in PAGES) <= MOST_WORDS


def test_fewer_than_forty_sentences_have_more_than_thirty_words():
    long = [(page.name, one) for page in PAGES for one in sentences(prose(page)) if words(one) > LONG]
    assert len(long) <= MOST_LONG, long
