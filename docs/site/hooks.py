"""Docstrings name what they speak of by Sphinx' roles: the site shows names, and links the pages of ``docs/``."""

from __future__ import annotations

import re
from typing import Any

ROLE = re.compile(r":(?:attr|class|const|data|exc|func|meth|mod):<code>~?([\w.]+)</code>")
PAGE = re.compile(r"(?:<code>)?\bdocs/([\w-]+)\.md(?:</code>)?(?![^<]*</code>)")


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """``:class:`~a.b.C` `` is ``C``; other names are shown as they are written."""
    html = ROLE.sub(lambda found: f"<code>{found[1].rpartition('.')[2]}</code>", html)
    return PAGE.sub(r'<a href="../\1.html">\1</a>', html) if page.url.startswith("reference/") else html
