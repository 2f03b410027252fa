"""The routes of the pages, and what all of them have in common: who may see it, headers, and pages for what fails."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from aiohttp import web

from ldp_aggregator.dashboard import campaigns, creation, overview, public
from ldp_aggregator.dashboard.page_sources import Sources, sample
from ldp_aggregator.dashboard.pages import HEADERS, PageError, page
from ldp_aggregator.dashboard.session import FORM_BYTES, Visit, enter, get_login, post_login, post_logout
from ldp_aggregator.store.contract import DELETED, LOG, UNKNOWN, StoreError, kind_of
from ldp_protocols.errors import LdpError

Handler = Callable[[Visit, Sources], Awaitable[web.Response]]

DRAFT_BYTES: Final = 1 << 20
"""The longest form with a draft, or the header of a table."""


@dataclass(frozen=True)
class Route:
    """An ``is_open`` route needs no session; ``longest`` is the longest form that it takes."""

    method: str
    path: str
    handler: Handler
    is_open: bool = False
    longest: int = FORM_BYTES


ASSET: Final = Route("GET", "/assets/{name}", public.get_asset, is_open=True)

ADMIN: Final = (
    ASSET,
    Route("GET", "/login", get_login, is_open=True),
    Route("POST", "/login", post_login, is_open=True),
    Route("POST", "/logout", post_logout),
    Route("GET", "/", overview.get_overview),
    Route("GET", "/live", overview.get_live),
    Route("GET", "/campaigns/new", creation.get_form),
    Route("POST", "/campaigns/new", creation.post_form, longest=DRAFT_BYTES),
    Route("POST", "/campaigns/check", creation.post_check, longest=DRAFT_BYTES),
    Route("GET", "/campaigns/{id}", campaigns.campaign_page),
    Route("GET", "/campaigns/{id}/live", campaigns.get_live),
    Route("GET", "/campaigns/{id}/model.json", campaigns.get_model),
    Route("GET", "/campaigns/{id}/document.json", campaigns.get_document),
    *(Route("GET", f"/campaigns/{{id}}/{tab}", partial(campaigns.campaign_page, tab=tab)) for tab in campaigns.TABS),
    Route("POST", "/campaigns/{id}/train", campaigns.post_train),
    Route("POST", "/campaigns/{id}/choose", campaigns.post_choose),
    Route("POST", "/campaigns/{id}/round", campaigns.post_round),
    *(Route("POST", f"/campaigns/{{id}}/{act}", partial(campaigns.post_end, act)) for act in campaigns.ENDS),
    Route("GET", "/health", overview.get_health),
    Route("GET", "/federation", overview.get_federation),
    Route("GET", "/tokens", overview.get_tokens),
    Route("POST", "/tokens", overview.post_token),
    Route("POST", "/tokens/revoke", overview.post_revoke),
)

PUBLIC: Final = (
    ASSET,
    Route("GET", "/", public.get_start, is_open=True),
    Route("GET", "/c/{id}", public.get_page, is_open=True),
)


TRY: Final = (
    Route("GET", "/try", public.get_try_folder, is_open=True),
    Route("GET", "/try/{name:[^/]*}", public.get_try, is_open=True),
)


def add_admin_pages(app: web.Application, sources: Sources) -> None:
    """The dashboard, and the sampling that its curves need, for as long as the application runs."""
    _add(app, ADMIN, sources, "/")

    async def sampling(_app: web.Application) -> AsyncIterator[None]:
        task = asyncio.create_task(sample(sources.store, sources.history, sources.clock), name="history")
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    app.cleanup_ctx.append(sampling)


def add_public_pages(app: web.Application, sources: Sources) -> None:
    """A page per campaign, for people, one at the root, and where it is offered the one that explains local privacy."""
    _add(app, (*PUBLIC, *(TRY if sources.has_try else ())), sources, "")


def _add(app: web.Application, routes: tuple[Route, ...], sources: Sources, home: str) -> None:
    for route in routes:
        handler = _answering(route, sources, home)
        app.router.add_route(route.method, route.path, handler)
        if route.method == "GET":
            app.router.add_route("HEAD", route.path, handler)
    for path in dict.fromkeys(route.path for route in routes):
        allowed = ", ".join(sorted(route.method for route in routes if route.path == path))
        app.router.add_route(
            "*", path, _answering(Route("other", path, _refusing(allowed), is_open=True), sources, home)
        )


def _refusing(allowed: str) -> Handler:
    async def refuse(_visit: Visit, _sources: Sources) -> web.Response:
        answer = error_page(PageError(405, "Not that way", f"This page takes {allowed}."), "")
        answer.headers["Allow"] = allowed
        return answer

    return refuse


def _answering(route: Route, sources: Sources, home: str) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        started = time.perf_counter()
        visit: Visit | web.Response | None = None
        try:
            visit = Visit(request) if route.is_open else await enter(request, sources, route.longest)
            response = visit if isinstance(visit, web.Response) else await route.handler(visit, sources)
        except Exception as error:  # Whatever it is, a person gets a page and not a traceback.
            response = error_page(_explained(error), home, visit)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        response.headers.setdefault("Cache-Control", "no-store")
        sources.count(route.path, route.method, response.status, time.perf_counter() - started)
        return response

    return answer


def error_page(error: PageError, home: str, visit: Visit | web.Response | None = None) -> web.Response:
    """A page that says what is wrong and where to go on; nowhere, where ``home`` is empty and nobody is signed in."""
    common = visit.common() if isinstance(visit, Visit) else {"session": None}
    return page("error.html", error.status, title=error.title, detail=error.detail, home=home, **common)


def _explained(error: Exception) -> PageError:
    if isinstance(error, PageError):
        return error
    if isinstance(error, StoreError) and error.code == UNKNOWN:
        return PageError(404, "No such campaign", "No campaign has this id. It may stand in another store.")
    if isinstance(error, StoreError) and error.code == DELETED:
        return PageError(410, "Deleted", "This campaign was deleted, with all that was counted and published.")
    if isinstance(error, web.HTTPException):
        return PageError(error.status, error.reason or "Refused", "The form is longer than this server accepts.")
    if isinstance(error, LdpError) and error.code == "not-installed":
        return PageError(501, "Not installed here", f"{error}.")
    if isinstance(error, StoreError):
        LOG.error("store error", extra={"reason": kind_of(error)})
        return PageError(503, "The store does not answer", "Nothing was changed. Try again in a moment.")
    LOG.error("internal error", extra={"reason": kind_of(error)}, exc_info=error)
    return PageError(500, "The server failed", "Nothing was counted or published by this request; its log says why.")
