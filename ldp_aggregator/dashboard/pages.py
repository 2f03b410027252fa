"""Pages from templates: everything is escaped, and nothing but this server's own files may run or be loaded."""

from __future__ import annotations

import hashlib
import importlib.resources
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from aiohttp import ETag, web

from ldp_aggregator.service import words

if TYPE_CHECKING:
    from jinja2 import Environment

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With "no-referrer" browsers send "Origin: null" with this server's own forms, and nothing would tell them apart.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Server": "ldp-aggregator",
}
"""On every page: no inline script or style, nothing from elsewhere, no frame around it."""

MEDIA_TYPES: Final[Mapping[str, str]] = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}


class PageError(Exception):
    """Raise to answer with a page that says what is wrong and what would be right."""

    def __init__(self, status: int, title: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.title = title
        self.detail = detail


@lru_cache(maxsize=1)
def _environment() -> Environment:
    # Here: a server whose pages nobody looks at carries no template engine.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("ldp_aggregator.dashboard", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    filters = (words.number, words.counted, words.instant, words.percent, words.sentence, words.plain, words.upward)
    environment.filters.update({one.__name__: one for one in filters})
    environment.globals.update(words=words, infinity=math.inf)
    return environment


def render(template: str, /, **values: Any) -> str:
    """A page of ``templates/``; raises jinja2.UndefinedError for a name that is not given."""
    return _environment().get_template(template).render(values)


def page(template: str, http_status: int = 200, /, **values: Any) -> web.Response:
    """See :func:`render`."""
    text = render(template, **values)
    return web.Response(text=text, status=http_status, content_type="text/html", charset="utf-8")


def cacheable(request: web.Request, body: bytes, media_type: str, cache: str) -> web.Response:
    """A 200, or a 304 where the browser has it already."""
    tag = hashlib.sha256(body).hexdigest()
    headers = {"ETag": f'"{tag}"', "Cache-Control": cache}
    have = request.if_none_match
    if have and any(isinstance(entry, ETag) and entry.value in ("*", tag) for entry in have):
        return web.Response(status=304, headers=headers)
    return web.Response(body=body, content_type=media_type, charset="utf-8", headers=headers)


@lru_cache(maxsize=16)
def asset(name: str, folder: str = "static") -> tuple[bytes, str] | None:
    """A file of a folder and its media type; None where there is none of this name."""
    files = {
        entry.name: entry for entry in importlib.resources.files("ldp_aggregator.dashboard").joinpath(folder).iterdir()
    }
    if name not in files:
        return None
    suffix = "." + name.rpartition(".")[2]
    return (files[name].read_bytes(), MEDIA_TYPES[suffix]) if suffix in MEDIA_TYPES else None
