"""Sphinx' roles of docstrings become names, pages of ``docs/`` become links, and figures link to themselves.

Where ``NAME-narrow.svg`` stands beside ``NAME.svg``, a phone shows that one.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Any

ROLE = re.compile(r":(?:attr|class|const|data|exc|func|meth|mod):<code>~?([\w.]+)</code>")
PAGE = re.compile(r"(?:<code>)?\bdocs/([\w-]+)\.md(?:</code>)?(?![^<]*</code>)")


FIGURE = re.compile(r'<img [^>]*src="(?P<address>[^"]+\.svg)"[^>]*>(?!</a>)')


SHIM = Path(sys.prefix) / "npm" / "node_modules" / "iframe-worker" / "shim" / "index.js"
"""With it the search's worker runs where pages come from a folder; the Makefile installs it."""


def on_post_build(config: Any, **_: Any) -> None:
    """Put the search's worker for pages in a folder beside the theme's scripts."""
    shutil.copy(SHIM, Path(config.site_dir) / "assets" / "iframe-worker.js")


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """``:class:`~a.b.C` `` becomes ``C``, and a click on a figure opens it in its own size."""
    html = FIGURE.sub(lambda found: _figure(found, Path(page.file.abs_src_path).parent), html)
    html = ROLE.sub(lambda found: f"<code>{found[1].rpartition('.')[2]}</code>", html)
    return PAGE.sub(r'<a href="../\1.html">\1</a>', html) if page.url.startswith("reference/") else html


def _figure(found: re.Match[str], folder: Path) -> str:
    narrow = found["address"].removesuffix(".svg") + "-narrow.svg"
    image = found[0]
    if (folder / narrow).is_file():
        image = f'<picture><source media="(max-width: 600px)" srcset="{narrow}">{image}</picture>'
    return f'<a href="{found["address"]}">{image}</a>'
