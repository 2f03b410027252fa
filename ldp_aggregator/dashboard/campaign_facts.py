"""Numbers of a campaign for its pages, worked out off the loop once for a state of its counts, and the facts that
verdicts are made of.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.dashboard.drawing.learned_features import (
    FeatureFigure,
    OverTime,
    believed,
    of_features,
    over_time,
    shown_series,
)
from ldp_aggregator.dashboard.drawing.precision import (
    Precision,
    Reach,
    devices_of,
    more_devices,
    precisions,
    reaches,
    widest,
)
from ldp_aggregator.dashboard.page_sources import Readings, Refused, Sources, refused_by
from ldp_aggregator.estimation.estimates import Estimates, estimate
from ldp_aggregator.estimation.posterior import Posterior
from ldp_aggregator.learning.series import QuestionSeries
from ldp_aggregator.service.publishing import evaluation_so_far, tally_to_publish, tally_to_show, trained_on
from ldp_aggregator.service.verdicts import (
    LIARS_SHARE,
    Facts,
    Guess,
    Measured,
    ModelRow,
    guess_of,
    kept_too_long,
    measured_of,
    model_row,
    without_training,
)
from ldp_aggregator.service.words import counted, percent
from ldp_aggregator.store.contract import CONFLICTING, CampaignState, StoreError
from ldp_protocols import Campaign
from ldp_protocols.document.authored import MODEL, MOMENTS, SCORE, STATISTICS
from ldp_protocols.errors import LdpError

MOST_WARM: Final = 25
"""Campaigns whose pages are worked out before somebody asks for them: those of the list's first page."""


class Numbers:
    """Numbers of a campaign in one state of its counts: as ``counted``, which its operator sees, and as ``released``,
    of which estimates are made. Each is worked out when it is first asked for, in whatever thread that is.
    """

    def __init__(self, campaign: Campaign, counted: Tally, released: Tally, reports: int, moment: datetime) -> None:
        self.campaign, self.counted, self.released = campaign, counted, released
        self.devices = devices_of(campaign, counted)
        self.reports, self.moment = reports, moment

    @cached_property
    def estimates(self) -> Estimates | None:
        """None where only sums are asked, which are not shown."""
        return None if self.campaign.asks == MOMENTS else estimate(self.campaign, self.released)

    @cached_property
    def belief(self) -> Posterior | None:
        """The posterior of a model; None of a campaign for none, or of more than can be believed together."""
        if self.campaign.asks != MODEL or self.estimates is None:
            return None
        try:
            return believed(self.estimates)
        except ValueError:  # Whoever trains is told.
            return None

    @cached_property
    def questions(self) -> list[Precision]:
        return precisions(self.campaign, self.devices, self.counted.pooled().n.tolist(), self.estimates)

    @cached_property
    def reaches(self) -> list[Reach]:
        """The precision of so many devices, and of more."""
        return reaches(self.campaign, self.devices)

    @cached_property
    def features(self) -> list[FeatureFigure]:
        """Those that tell most come first, nobody lying."""
        return self.features_if(0)

    def features_if(self, liars: int) -> list[FeatureFigure]:
        """The same, as far as so many liars can have moved them."""
        if self.estimates is None or (self.belief is None and self.campaign.asks != STATISTICS):
            return []
        return of_features(self.estimates, self.belief, liars)

    @cached_property
    def _series(self) -> tuple[QuestionSeries, ...]:
        is_drawn = self.belief is not None or self.campaign.asks == STATISTICS
        return shown_series(self.campaign, self.released) if is_drawn else ()

    def work_out(self, *, learned: bool) -> None:
        """Everything that pages show of a campaign, with all that it ``learned``, so that no page has to."""
        for name in ("questions", "guess", *(("features", "_series", "reaches") if learned else ())):
            getattr(self, name)

    def over_time(self, moment: datetime, feature: str | None) -> OverTime | None:
        """Curves and the last window in words, of a campaign with windows that has answers."""
        return over_time(self.campaign, self.released, self._series, moment, feature)

    @property
    def guess(self) -> Guess | None:
        """The most frequent class, as a campaign for a model tells it."""
        if self.estimates is None or self.campaign.asks != MODEL:
            return None
        prior = self.estimates.class_prior
        place = int(prior.value.argmax())
        if not math.isfinite(prior.variance[place]):
            return None
        share, low, high = (float(one[place]) for one in (prior.value, prior.low, prior.high))
        return Guess(self.campaign.label.classes[place], min(max(share, 0.0), 1.0), low, high)


async def numbers_of(sources: Sources, campaign: Campaign, state: CampaignState) -> Numbers:
    """The numbers of a campaign of devices as of now, the same ones while nothing more is counted."""

    async def read() -> Numbers:
        moment, counts = sources.clock(), await tally_to_show(sources.store, campaign)
        # What estimates and devices see, and what no release shows yet, as the HTTP API has it.
        released = counts if campaign.asks == MOMENTS else await tally_to_publish(sources.store, campaign)
        return Numbers(campaign, counts, released, state.reports, moment)

    return await sources.latest.exact(("counted", campaign.id), state.reports, read)


async def shown_of(sources: Sources, campaign: Campaign, state: CampaignState, *, learned: bool = True) -> Numbers:
    """The numbers that a campaign's pages show, worked out: those of now, or the last ones while newer are made.
    Without what was ``learned`` those of its place in the list.
    """

    async def work() -> Numbers:
        numbers = await numbers_of(sources, campaign, state)
        await asyncio.to_thread(numbers.work_out, learned=learned)
        if campaign.asks == SCORE:
            await evaluation_of(sources, numbers)
        return numbers

    return await sources.latest.soon(("shown", learned, campaign.id), state.reports, work)


def warm(sources: Sources, states: Sequence[CampaignState]) -> None:
    """Begin to work out what the campaigns' pages will show, one after the other: somebody looks at their list."""
    names = tuple(state.id for state in states if state.reports and not state.federated)[:MOST_WARM]

    async def work() -> None:
        for name in names:
            with suppress(LdpError, StoreError):  # Its own page says what is wrong with it.
                await shown_of(sources, await sources.campaign(name), await sources.store.state(name))

    if not sources.latest.has("warm", names):
        sources.latest.start("warm", names, work)


async def evaluation_of(sources: Sources, numbers: Numbers) -> dict[str, Any] | None:
    """The figures of an evaluation round, the last ones while newer are made; None where what reads one is not
    installed. Raises LdpError.
    """

    async def evaluate() -> dict[str, Any]:
        return (await evaluation_so_far(numbers.campaign, numbers.released)).to_json()

    key, version = ("evaluation", numbers.campaign.id), numbers.released.n.tobytes()
    try:
        return await sources.latest.soon(key, version, evaluate)
    except LdpError as error:
        if error.code != "not-installed":
            raise
        return None


async def model_of(sources: Sources, state: CampaignState, version: int | None = None) -> ModelRow | None:
    """A published model, by default the latest, as far as its document tells of it."""
    number = version or state.model_version
    if not number or state.federated:
        return None

    async def read() -> ModelRow | None:
        model = await sources.store.model(state.id, number)
        return None if model is None else model_row(model)

    return await sources.latest.exact(("model", state.id, number), number, read)


async def rounds(sources: Sources, states: Sequence[CampaignState]) -> list[tuple[CampaignState, list[str]]]:
    """The evaluation rounds among campaigns, the latest first, each with the campaigns that its model comes from.
    A document never changes: each is read once.
    """
    found = []
    for state in reversed(states):
        if state.federated or state.damaged:
            continue
        if state.id not in sources.rounds:
            with suppress(LdpError):  # One that cannot be read hides no other, and says so in its own place.
                campaign = await sources.campaign(state.id)
                sources.rounds[state.id] = trained_on(campaign) if campaign.asks == SCORE else []
        if sources.rounds.get(state.id):
            found.append((state, sources.rounds[state.id]))
    return found


async def _measured(
    sources: Sources, state: CampaignState, model: ModelRow | None, states: Sequence[CampaignState]
) -> tuple[Measured | None, Measured | None]:
    """The accuracy of the latest model, and that of an earlier one, by the rounds that there are."""
    earlier = None
    if model is None:
        return None, None
    for of_round, names in await rounds(sources, states):
        if state.id not in names:
            continue
        with suppress(LdpError):
            campaign = await sources.campaign(of_round.id)
            evaluation = await evaluation_of(sources, await numbers_of(sources, campaign, of_round))
            is_published = model.round == of_round.id
            # A threshold that the round would move is the model's once it is published with the round's figures.
            found = measured_of(evaluation, as_trained=not is_published) if evaluation else None
            evaluated = json.loads(campaign.evaluation.model.to_json()) if campaign.evaluation else {}
            if found is not None and (is_published or without_training(evaluated) == model.fitted):
                return found, None
            earlier = earlier or found
    return model.measured, earlier


def refused_of(state: CampaignState, readings: Readings, sources: Sources) -> list[Refused]:
    """The refusals of a campaign since the server started."""
    return refused_by(readings, state.id, sources.report_codes, sources.upload_codes)


async def facts_of(
    sources: Sources,
    state: CampaignState,
    readings: Readings,
    states: Sequence[CampaignState],
    numbers: Numbers | None,
    *,
    learned: bool = True,
) -> Facts:
    """The facts of a campaign; without what was ``learned`` it takes no time that is worth a word."""
    refused = refused_of(state, readings, sources)
    facts: dict[str, Any] = {
        "status": state.status(sources.clock()),
        "reports": state.reports,
        "federated": state.federated,
        "stopped": readings.wrong_with(state.id),
        "refused": sum(one.number for one in refused),
        "conflicts": sum(one.number for one in refused if one.code == CONFLICTING),
    }
    if numbers is None or state.federated:
        return Facts(**facts, has_model=False)
    campaign = numbers.campaign
    facts["kept"] = kept_too_long(campaign, state.life, sources.clock(), archived=sources.is_archived)
    facts |= {"people": "person" if campaign.issuer else "device", "has_model": campaign.asks in (MODEL, SCORE)}
    facts["shares"] = len(campaign.asked) if campaign.asks == STATISTICS else 0
    if campaign.asks == SCORE:
        return Facts(**facts, **await _of_round(sources, numbers))
    model = await model_of(sources, state)
    measured, earlier = await _measured(sources, state, model, states)
    facts |= {"model": model, "measured": measured, "earlier": earlier}
    return Facts(**facts, **await asyncio.to_thread(facts_in, numbers, learned))


async def _of_round(sources: Sources, numbers: Numbers) -> dict[str, Any]:
    evaluated = await evaluation_of(sources, numbers)
    measured = measured_of(evaluated) if evaluated else None
    if evaluated is None or measured is None:
        return {"is_round": True}
    guess = guess_of(evaluated["classes"])
    for name in trained_on(numbers.campaign):  # Many more may have told the classes there.
        with suppress(LdpError):
            other = (await numbers_of(sources, await sources.campaign(name), await sources.store.state(name))).guess
            guess = other if guess is None or (other and other.high - other.low < guess.high - guess.low) else guess
    than = "" if guess is None else f" Always guessing “{guess.name}” would be right for {percent(guess.share)}."
    says = f"As {counted(measured.devices, 'device')} told that took no part in training.{than}"
    headline = f"The model is right for {percent(measured.value)}", says
    return {
        "is_round": True,
        "measured": measured,
        "guess": guess,
        "width": (measured.high - measured.low) / 2,
        "told": headline,
    }


def facts_in(numbers: Numbers, learned: bool = True) -> dict[str, Any]:
    """The facts of a campaign that are in its counts."""
    width, estimates = widest(numbers.questions), numbers.estimates
    facts: dict[str, Any] = {
        "width": width,
        "more": more_devices(numbers.campaign, numbers.devices, width),
        "guess": numbers.guess,
    }
    if estimates is not None and numbers.guess is not None:
        moved = liars_of(numbers.campaign, numbers.devices, LIARS_SHARE) * estimates.class_prior_per_liar
        if math.isfinite(moved):
            facts["moved"] = numbers.campaign.label.classes[0], min(float(moved), 1.0)
    if learned and numbers.features:
        best = numbers.features[0]
        facts["top"] = (best.title, best.told, best.removed) if numbers.belief else None
        series = numbers.over_time(numbers.moment, None)
        facts["told"] = series.now if series else None
    return facts


def liars_of(campaign: Campaign, devices: int, share: float) -> int:
    """The number of people behind such a share of the devices; a person may have several."""
    return math.ceil(devices * share / campaign.answers_of_a_person)
