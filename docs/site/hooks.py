"""Sphinx' roles of docstrings become names, pages of ``docs/`` become links, figures link to themselves, and the first
of each word of the glossary on a page has its meaning as a tooltip.

Where ``NAME-narrow.svg`` stands beside ``NAME.svg``, a phone shows that one.
"""

from __future__ import annotations

import html as escapes
import re
import shutil
import sys
from pathlib import Path
from typing import Any

ROLE = re.compile(r":(?:attr|class|const|data|exc|func|meth|mod):<code>~?([\w.]+)</code>")
PAGE = re.compile(r"(?:<code>)?\bdocs/([\w-]+)\.md(?:</code>)?(?![^<]*</code>)")


GLOSSARY = re.compile(r"^\* \*\*(?P<word>[^*]+)\*\*: (?P<meaning>.+)$", re.MULTILINE)
TAG = re.compile(r"(<!--.*?-->|<[^>]*>)", re.DOTALL)
BARE = ("a", "abbr", "button", "code", "h1", "h2", "h3", "h4", "label", "pre", "script", "style", "summary", "svg")
"""Elements in which no word of the glossary has a tooltip: code, headings, what a click does something to."""
EXPLAINED_NOWHERE = ("glossary.md", "changelog.md", "reference/")

FIGURE = re.compile(r'<img [^>]*src="(?P<address>[^"]+\.svg)"[^>]*>(?!</a>)')


SHIM = Path(sys.prefix) / "npm" / "node_modules" / "iframe-worker" / "shim" / "index.js"
"""With it the search's worker runs where pages come from a folder; the Makefile installs it."""


KEPT = re.compile(r"(<(?:pre|script|style|textarea)\b.*?</(?:pre|script|style|textarea)>)", re.DOTALL)
"""Elements in which a space counts."""
CHANGED = {
    r'location\.protocol==="file:"(?=\?\w+\(`\$\{new URL\("search/search_index\.js")': "true",
    r'\w+&&\w+\?(\w+\.setAttribute\("tabindex","0"\)):\w+\.removeAttribute\("tabindex"\)': r"\1",
    r'\{class:"md-typeset__scrollwrap"\}': '{class:"md-typeset__scrollwrap",tabindex:0}',
}
"""Parts of the theme's script: the index of the search, and the keyboard's way to code and tables that scroll."""

FIRST = ("reference/draft.md", "upgrade.md", "how-to/choose.md")
LAST = ("figures/", "changelog.md", "reference/")
"""What the search puts last, or first, of pages that do not say so themselves."""


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Give a page its weight in the search."""
    place = page.file.src_uri
    if place.startswith((*FIRST, *LAST)):
        page.meta.setdefault("search", {"boost": 2 if place.startswith(FIRST) else 0.4})
    return markdown


def on_post_page(output: str, **_: Any) -> str:
    """A page without the indents of the theme's templates, a fifth of its bytes; its search has a name, and the
    keyboard reaches tabs that scroll.
    """
    parts = KEPT.split(output)
    parts[::2] = [re.sub(r"\s*\n\s*", "\n", part) for part in parts[::2]]
    page = "".join(parts).replace('role="dialog">', 'role="dialog" aria-label="Search">', 1)
    return page.replace('class="tabbed-labels"', 'class="tabbed-labels" tabindex="0"')


def on_post_template(output_content: str, template_name: str, **_: Any) -> str:
    """The page of an address that is none, like the others."""
    return on_post_page(output_content) if template_name == "404.html" else output_content


def on_post_build(config: Any, **_: Any) -> None:
    """Put the search's worker for pages in a folder beside the theme's scripts, and make the site smaller.

    No reader's browser loads the sources of the theme's scripts, or the search in other languages. The search takes the
    index that pages in a folder need over HTTP, too, so that there is one.
    """
    assets = Path(config.site_dir) / "assets"
    shutil.copy(SHIM, assets / "iframe-worker.js")
    shutil.rmtree(assets / "javascripts" / "lunr")
    for source in assets.rglob("*.map"):
        source.unlink()
    (bundle,) = (assets / "javascripts").glob("bundle.*.min.js")
    script = bundle.read_text(encoding="utf-8")
    for now, wanted in CHANGED.items():
        script, count = re.subn(now, wanted, script)
        if count != 1:
            raise ValueError(f"{bundle.name}: the theme's script has {now} {count} times, not once")
    bundle.write_text(script, encoding="utf-8")
    (Path(config.site_dir) / "search" / "search_index.json").unlink()


on_post_build.mkdocs_priority = -200  # type: ignore[attr-defined]  # After the offline plugin, which reads that index.


def glossary(text: str) -> dict[str, str]:
    """Meanings of the glossary's words as plain text, the longest word first."""
    rows = ((one["word"], one["meaning"]) for one in GLOSSARY.finditer(text))
    found = [(word, re.sub(r"\[([^]]+)\]\([^)]*\)|[`*]", r"\1", meaning)) for word, meaning in rows]
    return dict(sorted(found, key=lambda one: -len(one[0])))


def explained(html: str, meanings: dict[str, str]) -> str:
    """A page in which the first of each word, or of its plural, outside of :data:`BARE` has its meaning as a title."""
    words = {word.lower(): word for word in meanings}
    pattern = re.compile(rf"\b(?P<word>{'|'.join(map(re.escape, words))})(?P<end>s?)\b", re.IGNORECASE)
    left, inside, parts = set(words), [], TAG.split(html)

    def told(found: re.Match[str]) -> str:
        word = found["word"].lower()
        if word not in left:
            return found[0]
        left.remove(word)
        return f'<abbr title="{escapes.escape(meanings[words[word]])}">{found[0]}</abbr>'

    for place, part in enumerate(parts):
        tag = re.match(r"<(/?)(\w+)", part)
        if place % 2 and tag and tag[2] in BARE:
            inside = [*inside, tag[2]] if not tag[1] else inside[:-1]
        elif not place % 2 and not inside:
            parts[place] = pattern.sub(told, part)
    return "".join(parts)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """``:class:`~a.b.C` `` becomes ``C``, and a click on a figure opens it in its own size."""
    path = Path(page.file.abs_src_path)
    if not page.file.src_uri.startswith(EXPLAINED_NOWHERE):
        meanings = glossary((path.parents[page.file.src_uri.count("/")] / "glossary.md").read_text(encoding="utf-8"))
        html = explained(html, meanings)
    html = FIGURE.sub(lambda found: _figure(found, Path(page.file.abs_src_path).parent), html)
    html = ROLE.sub(lambda found: f"<code>{found[1].rpartition('.')[2]}</code>", html)
    return PAGE.sub(r'<a href="../\1.html">\1</a>', html) if page.url.startswith("reference/") else html


def _figure(found: re.Match[str], folder: Path) -> str:
    narrow = found["address"].removesuffix(".svg") + "-narrow.svg"
    image = found[0]
    if (folder / narrow).is_file():
        image = f'<picture><source media="(max-width: 600px)" srcset="{narrow}">{image}</picture>'
    return f'<a href="{found["address"]}">{image}</a>'
