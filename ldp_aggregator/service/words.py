"""Numbers and guarantees as people read them, on pages and on the command line."""

from __future__ import annotations

import math
from datetime import datetime
from itertools import pairwise
from typing import Final

from markupsafe import Markup

from ldp_aggregator.guarantees import Guarantee
from ldp_aggregator.mechanisms import FACTS
from ldp_protocols.features import Feature

NONE: Final = "–"
SHORT: Final = 8
"""Letters of an id that stand for it."""


def number(value: float | int | None) -> str:
    """The number with its thousands apart; a dash for what is not known."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return NONE
    return f"{value:,}" if isinstance(value, int) else plain(value)


def plain(value: float | None, digits: int = 3) -> str:
    """A number to so many significant digits, never as a power of ten unless it is tiny or huge."""
    if value is None or not math.isfinite(value):
        return NONE
    if value and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{digits}g}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:,.{places}f}".replace("-", "\u2212")


def percent(value: float | None) -> str:
    """A share in percent."""
    if value is None or not math.isfinite(value):
        return NONE
    return f"{100 * value:.1f}\u00a0%".replace("-", "\u2212")


def whole_percent(value: float) -> str:
    """A share in whole percent."""
    return f"{100 * value:.0f}\u00a0%"


def interval(low: float, high: float) -> str:
    """A share's interval in percent; no share is below 0 or above 1."""
    least, most = (f"{100 * min(max(end, 0.0), 1.0):.1f}" for end in (low, high))
    return f"{least} to {most}\u00a0%"


def bits(value: float) -> str:
    """A number of bits, to a hundredth."""
    return f"{value:.2f}\u00a0bits" if value >= 0.005 else "below 0.01\u00a0bits"


def many(value: int, noun: str) -> str:
    """So many of what has a regular plural."""
    return f"{number(value)} {noun}{'' if value == 1 else 's'}"


def counted(value: int, noun: str) -> str:
    """:func:`many`, in one line of a page."""
    return many(value, noun).replace(" ", "\u00a0")


def size(number: float) -> str:
    """A number of bytes."""
    return f"{number / 1e6:,.1f} MB" if number < 1e9 else f"{number / 1e9:,.1f} GB"


def about(value: float) -> str:
    """A number that is only roughly known, to two digits and no smaller."""
    unit = 10 ** max(0, math.floor(math.log10(value)) - 1) if value >= 1 else 1
    return f"about {math.ceil(value / unit - 1e-9) * unit:,}"


def short_id(campaign_id: str) -> str:
    """The first letters of an id; every command takes them for the whole of it."""
    return campaign_id[:SHORT]


def cells(feature: Feature) -> tuple[str, ...]:
    """The names of what there is to answer about a feature; bins of a number read "0 to 25,000"."""
    number = feature.number
    if number is None or number.moments is not None:
        return feature.cell_names
    edges = [plain_number(edge) for edge in (number.low, *number.inner_edges, number.high)]
    return *(f"{low} to {high}" for low, high in pairwise(edges)), *feature.cell_names[feature.size :]


def plain_number(value: float) -> str:
    """A bound as its author wrote it, thousands apart."""
    text = f"{value:,.6f}".rstrip("0").rstrip(".") if 1e-4 <= abs(value) < 1e12 or not value else f"{value:g}"
    return text.replace("-", "\u2212")


def sentence(text: str) -> str:
    """The text with a capital letter before and a full stop behind."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def instant(value: datetime | None) -> Markup:
    """A time in UTC, to the minute."""
    if value is None:
        return Markup(NONE)  # noqa: S704 - a dash
    form = '<time datetime="{:%Y-%m-%dT%H:%M:%SZ}">{:%Y-%m-%d %H:%M UTC}</time>'
    return Markup(form.format(value, value))  # noqa: S704 - digits only


def upward(value: float, digits: int = 3) -> str:
    """A bound to so many significant digits, rounded up: what is promised is never less than what holds."""
    if not value > 0 or not math.isfinite(value):
        return plain(value, digits)
    unit = 10.0 ** (math.floor(math.log10(value)) + 1 - digits)
    # What stands just above a round number by the error of floating point alone is that number.
    return plain(math.ceil(value / unit * (1 - 1e-12)) * unit, digits)


def odds(epsilon: float) -> str:
    """The factor by which odds change at most."""
    return upward(math.exp(min(epsilon, 700.0)))


def even_odds(epsilon: float) -> str:
    """The most that an even guess becomes: e^epsilon / (1 + e^epsilon), rounded up to a percent."""
    return f"{min(100, math.ceil(100 / (1 + math.exp(-min(epsilon, 700.0))) - 1e-9))} %"


def loss(guarantee: Guarantee) -> str:
    """epsilon and delta of a guarantee."""
    if guarantee.epsilon is None:
        return "no privacy"
    return f"ε = {upward(guarantee.epsilon, 4)}" + (f", δ = {guarantee.delta:g}" if guarantee.delta else "")


def mechanism(name: str) -> str:
    """Say what a mechanism does, in a few words."""
    return FACTS[name].words if name in FACTS else name
