"""The code blocks of a page, and the one rule for them: a block runs, or a comment before it says why it does not.

* `sh`, `python` and `js` blocks run in the order of the page, in one folder, one shell and one Python namespace.
* A block with a `title` is a file of that name, which later blocks use.
* A `text` block behind one that ran is what that one prints; `...` stands for anything.
* `<!-- not run: REASON -->` on the line before keeps a block from running.
"""

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "deploy/client-wheel/README.md",
    *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md")),
    "examples/flower/README.md",
    "examples/javascript/README.md",
    "javascript/README.md",
    "kotlin/README.md",
    "swift/README.md",
    "swift/Sources/LdpBayes/LdpBayes.docc/LdpBayes.md",
    "protocols/vectors/README.md",
)
FENCE = re.compile(
    r"^(?: *<!-- not run: (?P<reason>[^\n]+) -->\n)?"
    r"(?P<indent> *)```(?P<language>\w*)(?: title=\"(?P<title>[^\"]+)\")?\n"
    r"(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
INCLUDED = re.compile(r'^--8<-- "(?P<path>[^"]+)"$')
OUTPUT = "text"


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    section: int
    """How many headings of the second rank stand above it."""
    language: str
    title: str | None
    text: str
    reason: str | None
    """Why it does not run; None where it does."""

    @property
    def place(self):
        return f"{self.page}:{self.line}"

    @property
    def included(self):
        """The file that the site shows in place of the block."""
        found = INCLUDED.match(self.text.strip())
        return ROOT / found["path"] if found else None


def blocks_of(page):
    content, blocks = (ROOT / page).read_text(encoding="utf-8"), []
    for found in FENCE.finditer(content):
        line = content.count("\n", 0, found.start("language")) + 1
        section = len(re.findall(r"^## ", content[: found.start()], re.MULTILINE))
        text = textwrap.dedent(found["text"])
        blocks.append(Block(page, line, section, found["language"], found["title"], text, found["reason"]))
    return blocks


def says(output, expected):
    """Whether ``expected`` stands in ``output``, `...` being anything; blanks at ends of lines do not count."""
    lines = [re.escape(line.rstrip()).replace(r"\.\.\.", ".*?") for line in expected.strip("\n").split("\n")]
    printed = "\n".join(line.rstrip() for line in output.split("\n"))
    return re.search(r"^" + r"\n".join(lines) + r"$", printed, re.MULTILINE | re.DOTALL) is not None
