"""A picture of accuracies that a telephone can show: a row for each table of people, the most to learn first.

Written as SVG by hand, so that the same table gives the same bytes with every version of every library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

import pandas as pd

from ldp_aggregator.trainers.reading import TableError

_WIDTH: Final = 360
_LEFT: Final = 112
_RIGHT: Final = 24
_TOP: Final = 116
_STEP: Final = 26
_SHADES: Final = ("#9ecae1", "#4292c6", "#08306b")
"""Few, more and many devices: one hue, that grows darker."""


@dataclass(frozen=True)
class Overview:
    """Accuracies of three numbers of devices between always guessing the most frequent class and no privacy."""

    name: str
    title: tuple[str, ...]
    """Lines of the message, which the picture also says to who cannot see it."""
    devices: tuple[int, int, int]
    select: Callable[[pd.DataFrame], pd.DataFrame]

    def draw(self, table: pd.DataFrame, path: Path) -> None:
        """Write the picture. Raises TableError where the file cannot be written."""
        try:
            path.write_text("\n".join(self._lines(table)) + "\n", encoding="utf-8")
        except OSError as error:
            raise TableError(f"{path}: the picture cannot be written ({error.strerror})") from None

    def rows(self, table: pd.DataFrame) -> list[tuple[str, float, float, list[float]]]:
        """Name, accuracy of the most frequent class and without privacy, and with devices; the most to learn first."""
        points = self.select(table)
        wide = points.pivot(index="dataset", columns="devices", values="accuracy")[list(self.devices)]
        ends = points.groupby("dataset")[["majority", "non_private"]].first()
        order = (ends["majority"] - ends["non_private"]).sort_values(kind="stable").index
        return [
            (str(name), float(ends.loc[name, "majority"]), float(ends.loc[name, "non_private"]), [*wide.loc[name]])
            for name in order
        ]

    def _lines(self, table: pd.DataFrame) -> Iterator[str]:
        rows = self.rows(table)
        height = _TOP + _STEP * len(rows) + 34
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" aria-labelledby="t" '
            'font-family="system-ui, sans-serif" font-size="13">'
        )
        yield f'<title id="t">{escape(" ".join(self.title))}</title>'
        yield f'<rect width="{_WIDTH}" height="{height}" rx="8" fill="#f4f8f7"/>'
        for place, line in enumerate(self.title):
            look = 'font-size="14" font-weight="600" fill="#102a27"'
            yield f'<text x="12" y="{24 + 18 * place}" {look}>{escape(line)}</text>'
        yield from self._key()
        bottom = _TOP + _STEP * len(rows)
        for percent in (40, 60, 80, 100):
            x = _place(percent / 100)
            yield f'<path d="M{x} {_TOP - 8}V{bottom}" stroke="#cfd8dc"/>'
            yield _text(x, bottom + 18, f"{percent} %", "middle")
        for place, (name, majority, ceiling, accuracies) in enumerate(rows):
            y = _TOP + _STEP * place + 8
            yield _text(_LEFT - 10, y + 4, name.replace("_", " "), "end")
            yield f'<path d="M{_place(majority)} {y}H{_place(ceiling)}" stroke="#90a4ae" stroke-width="2"/>'
            yield from _ends(majority, ceiling, y)
            for accuracy, shade in zip(accuracies, _SHADES, strict=True):
                yield f'<circle cx="{_place(accuracy)}" cy="{y}" r="4.5" fill="{shade}" stroke="#fff"/>'
        yield "</svg>"

    def _key(self) -> Iterator[str]:
        x, y = 18.0, 24 + 18 * len(self.title)
        for count, shade in zip(self.devices, _SHADES, strict=True):
            yield f'<circle cx="{x:g}" cy="{y}" r="4.5" fill="{shade}" stroke="#fff"/>'
            yield _text(x + 9, y + 4, f"{count:,}" + (" devices" if count == self.devices[-1] else ""))
            x += 66
        yield f'<path d="M18 {y + 15}v12" stroke="#b71c1c" stroke-width="3"/>'
        yield _text(27, y + 25, "always the most frequent class")
        yield f'<path d="M238 {y + 15}v12" stroke="#102a27" stroke-width="3"/>'
        yield _text(247, y + 25, "without privacy")


def _ends(majority: float, ceiling: float, y: int) -> Sequence[str]:
    return [
        f'<path d="M{_place(accuracy)} {y - 7}v14" stroke="{colour}" stroke-width="3"/>'
        for accuracy, colour in ((majority, "#b71c1c"), (ceiling, "#102a27"))
    ]


def _place(accuracy: float) -> str:
    """Pixels from the left at which an accuracy stands; the axis goes from a quarter to all."""
    return f"{_LEFT + (accuracy - 0.25) / 0.75 * (_WIDTH - _LEFT - _RIGHT):.1f}"


def _text(x: float | str, y: int, text: str, anchor: str = "start") -> str:
    x = x if isinstance(x, str) else f"{x:g}"
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="#102a27">{escape(text)}</text>'
