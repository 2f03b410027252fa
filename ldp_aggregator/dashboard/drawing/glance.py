"""The four answers at the top of a campaign's page: is it healthy, how good is the model, what does it cost people, and
can somebody have moved it?
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from ldp_aggregator.dashboard.drawing.evaluations import ModelRow
from ldp_aggregator.dashboard.drawing.learned_features import Learned
from ldp_aggregator.dashboard.drawing.plots import Bar, interval_plot
from ldp_aggregator.dashboard.drawing.server_metrics import Refused
from ldp_aggregator.dashboard.drawing.words import counted, percent

GOOD: Final = "good"
LOOK: Final = "look"
BAD: Final = "bad"

CONFLICT: Final = "conflicting-report"
REFUSED_SHARE: Final = 0.01
"""Refusals beyond this share of what was counted are worth a look."""


@dataclass(frozen=True)
class Answer:
    """``mood`` is how it looks at a glance; ``says`` what is behind it."""

    mood: str
    text: str
    says: str
    plot: Markup | None = None


def health(status: str, reports: int, refused: Sequence[Refused], width: float, *, failing: bool) -> Answer:
    """Tell whether reports come in and are counted; ``width`` is the half width of the least precise question, and
    ``failing`` says that the store cannot count this campaign.
    """
    number = sum(one.number for one in refused)
    precision = "too few to tell anything yet" if not width < 1 else f"enough for ± {100 * width:.1f} points at worst"
    says = f"{counted(reports, 'report')}, {precision}."
    if failing:
        return Answer(BAD, "Not counted", "The store cannot count this campaign: ldp-aggregator fsck says why.")
    if number > max(1, REFUSED_SHARE * reports):
        return Answer(
            LOOK, "Look at what was refused", f"{says} {counted(number, 'refusal')} since this server started."
        )
    if status != "open":
        return Answer(GOOD, status.capitalize(), f"{says} It takes no reports now.")
    return Answer(GOOD, "Healthy", says)


def quality(models: Sequence[ModelRow]) -> Answer:
    """Tell how good the latest model is: as a round measured it, else as expected of its best feature."""
    if not models:
        return Answer(LOOK, "No model yet", "Train publishes one, or says why not.")
    model = models[0]
    if model.accuracy is not None and model.low is not None and model.high is not None:
        told, value, low, high = "measured", model.accuracy, model.low, model.high
        says = "Measured by devices that took no part in training."
    elif model.best is not None:
        told, (feature, low, high) = "expected", model.best
        value = math.nan
        says = f"Expected of {feature} alone; only an evaluation round tells how good all features are together."
    else:
        return Answer(LOOK, "Unknown", "The model does not say what to expect of it; an evaluation round does.")
    bars = [Bar(None, told, 0, 100 * (low + high) / 2 if math.isnan(value) else 100 * value, 100 * low, 100 * high)]
    mood = GOOD if model.above_majority is not False else LOOK
    if model.majority is not None:
        most = 100 * model.majority
        bars.append(Bar(None, "majority class", 1, most, most, most))
        says += f" Always saying the most frequent class is right for {percent(model.majority)}."
    if model.above_majority is False:
        says += " The model is not known to be better than that."
    text = f"{percent(low)} to {percent(high)}" if math.isnan(value) else percent(value)
    title = "Share of people whom the model gets right"
    return Answer(mood, text, says, interval_plot(bars, title=title, axis="% of people right", least=0, most=100))


def lies(liars: int, devices: int, prior: Learned | None, refused: Sequence[Refused]) -> Answer:
    """Tell how far ``liars`` can have moved the classes, and whether devices contradict themselves."""
    conflicts = sum(one.number for one in refused if one.code == CONFLICT)
    moved = max((row.moved for row in prior.rows), default=math.nan) if prior is not None and prior.n else math.nan
    if not math.isfinite(moved) or not devices:
        return Answer(GOOD, "Nothing to move yet", "Too few reports.")
    says = f"{counted(liars, 'liar')} of {counted(devices, 'device')} can have moved the shares of the classes so far."
    if conflicts:
        return Answer(
            LOOK, f"± {100 * moved:.1f} points", f"{says} {counted(conflicts, 'report')} came twice, differently."
        )
    return Answer(GOOD, f"± {100 * moved:.1f} points", f"{says} Nothing came twice with another answer.")
