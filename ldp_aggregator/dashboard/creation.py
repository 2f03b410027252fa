"""The form that makes a campaign: from a draft or from a table's columns, with what it would ask, cost and reach."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from ldp_aggregator.dashboard.drawing.precision import Precision, Reach, precisions, reaches
from ldp_aggregator.dashboard.page_sources import Sources
from ldp_aggregator.dashboard.pages import page
from ldp_aggregator.dashboard.session import Visit, see
from ldp_aggregator.service.drafts import ANOTHER_KIND, check_kind, compile_draft, draft_of, spread_header
from ldp_aggregator.service.rights import recorded
from ldp_protocols import Campaign, DraftError
from ldp_protocols.document.authored import FOR_PEOPLE

DEFAULT_DEVICES: Final = 10_000
MOST_DEVICES: Final = 1 << 40
MULTIPLES: Final = (1, 4, 10, 100)
EPSILONS: Final = (0.5, 1.0, 2.0, 4.0)
_NOT_COLUMNS: Final = "The columns are not a campaign yet"
FIELDS: Final = ("columns", "label", "title", "epsilon", *FOR_PEOPLE, "draft", "devices", "max_reports")


@dataclass(frozen=True)
class Preview:
    """The outcome of a draft: its campaign, the questions for so many devices, and what would change it."""

    campaign: Campaign
    devices: int
    questions: list[Precision]
    more: list[Reach]
    other: list[Reach]


async def get_form(visit: Visit, _sources: Sources) -> web.Response:
    """The form, as nobody has filled it in."""
    return _form(visit, {"epsilon": "1", "devices": str(DEFAULT_DEVICES)}, "", None)


async def post_check(visit: Visit, _sources: Sources) -> web.Response:
    """Work out what the form comes to so far, or what is wrong with it."""
    problem, plan = await _checked(visit.form)
    return page("verdict.html", problem=problem, plan=plan)


async def post_form(visit: Visit, sources: Sources) -> web.Response:
    """Write the draft of the columns out, check what there is, or publish it; whichever button was pressed."""
    form = {**visit.form, "columns": spread_header(visit.form.get("columns", ""))}
    if form.get("action") == "columns":
        try:
            form["draft"] = _draft({**form, "draft": ""}) or form.get("draft", "")
        except ValueError as error:
            return _form(visit, form, f"{_NOT_COLUMNS}: {error}.", None, status=400)
    problem, plan = await _checked(form)
    if plan is None and not problem and form.get("action") == "publish":
        problem = "There is nothing to publish yet: say what to ask, or write a draft."
    if plan is None or form.get("action") != "publish":
        return _form(visit, form, problem, plan, status=400 if problem else 200)
    problem = await _publish(plan.campaign, form, sources, visit.actor)
    if problem:
        return _form(visit, form, problem, plan, status=400)
    return see(f"/campaigns/{plan.campaign.id}")


async def show_draft(visit: Visit, form: dict[str, str]) -> web.Response:
    """The form with a draft that was made here, and what it comes to."""
    problem, plan = await _checked(form)
    return _form(visit, form, problem, plan, status=400 if problem else 200)


async def _publish(campaign: Campaign, form: dict[str, str], sources: Sources, actor: str) -> str:
    """Keep the campaign; says what is wrong where it cannot be."""
    federated = form.get("federated") == "yes"
    text = form.get("max_reports", "").strip()
    if text and not (text.isascii() and text.isdigit() and len(text) < 16 and int(text)):
        return "The most reports must be a whole number from 1, or nothing."
    most = int(text) if text else None
    try:
        check_kind(campaign, federated=federated, max_reports=most)
        if form.get("elsewhere") != "yes":
            sources.check_receivable(campaign)
    except DraftError as error:
        return f"{error}."
    async with recorded(sources.store, actor, "create campaign", campaign.id, campaign.title):
        created = await sources.store.create_campaign(campaign, max_reports=most, federated=federated)
    if not created and federated and not (await sources.store.state(campaign.id)).federated:
        return f"{ANOTHER_KIND}."
    if created:
        sources.mutated("campaign-created")
    return ""


async def _checked(form: Mapping[str, str]) -> tuple[str, Preview | None]:
    try:
        text = _draft(form)
    except ValueError as error:
        return f"{_NOT_COLUMNS}: {error}.", None
    try:
        return "", await asyncio.to_thread(_plan, text, _devices(form.get("devices", ""))) if text else None
    except DraftError as error:
        return f"The draft is not a campaign yet: {error}", None


def _draft(form: Mapping[str, str]) -> str:
    """The draft that was written, else that of the columns; "" where there is neither. Raises ValueError."""
    written, columns = form.get("draft", "").strip(), form.get("columns", "")
    if written or not columns.strip():
        return written
    for_people = {name: form.get(name, "") for name in FOR_PEOPLE}
    return draft_of(columns, form.get("label", ""), form.get("title", ""), form.get("epsilon", ""), for_people)


def _plan(text: str, devices: int) -> Preview:
    campaign = compile_draft(text.encode(), toml=not text.startswith("{"))
    questions = precisions(campaign, devices)
    more = reaches(campaign, devices, MULTIPLES)
    # Its own epsilon is in ``more``.
    others = [epsilon for epsilon in EPSILONS if epsilon != campaign.privacy.epsilon]
    changed = filter(None, (_with_epsilon(campaign, epsilon) for epsilon in others))
    other = [reach for one in changed for reach in reaches(one, devices, (1,))]
    return Preview(campaign, devices, questions, more, other)


def _with_epsilon(campaign: Campaign, epsilon: float) -> Campaign | None:
    """The same campaign at another epsilon, mechanisms chosen anew; None where it cannot be had."""
    document: dict[str, Any] = json.loads(campaign.document)
    document.pop("questions")
    document["privacy"]["epsilon"] = epsilon
    try:
        return Campaign.compile(document)
    except DraftError:
        return None


def _devices(text: str) -> int:
    text = text.strip()
    is_number = text.isascii() and text.isdigit() and len(text) < 16 and int(text)
    return min(int(text), MOST_DEVICES) if is_number else DEFAULT_DEVICES


def _form(visit: Visit, form: dict[str, str], problem: str, plan: Preview | None, *, status: int = 200) -> web.Response:
    values = {name: form.get(name, "") for name in FIELDS}
    ticked = {name: form.get(name) == "yes" for name in ("federated", "elsewhere")}
    return page("creation.html", status, values=values, problem=problem, plan=plan, **ticked, **visit.common())
