"""The one reader of CSV tables: separator, encoding, header, and cells that are numbers as people write them.

A cell is the text in the file, whatever the other rows hold, and is read by place: a row that is too short ends in
missing cells, what is beyond the header is left out. Where a schema is known, the header is the first line with all of
its names, and no row decides anything: what is an error follows from the header, which is public. Of tables that are
public themselves more is guessed, column by column, and told (:mod:`ldp_aggregator.trainers.table_drafts`).
"""

from __future__ import annotations

import codecs
import csv
import gzip
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from ldp_aggregator.learning.frames import numbers
from ldp_protocols.document.schema import Label
from ldp_protocols.features import Feature
from ldp_protocols.values import NUMERAL, digits_of, number_of, position_of, positions_of

SEPARATORS: Final = ",;\t|"
_SEPARATOR_NAMES: Final = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}

_HEAD_LINES: Final = 20
"""The header is sought in so many lines, and the separator where no name is known."""

_LONGEST_CELL: Final = 2**31 - 1
"""Characters. The csv module would refuse a table for one long cell; this is the most that it takes everywhere."""

NOTES: Final = "notes"
MARK: Final = "decimal mark"
"""Keys of a frame's ``attrs``: what its reading took for what, and the decimal mark where a comma is ambiguous."""

_ABSENT: Final = frozenset(("", "na", "n/a", "#n/a", "<na>", "nan", "null", "?"))
_NO_NUMBERS: Final = _ABSENT | frozenset(
    ("-", "--", ".", "none", "nil", "inf", "-inf", "+inf", "infinity", "-infinity")
)


class TableError(ValueError):
    """A table that cannot be read; the message says which file and why."""


def is_absent(text: str, *, number: bool = False) -> bool:
    """Tell whether a cell is empty or a mark of a missing value; among numbers there are more such marks."""
    return text.strip().lower() in (_NO_NUMBERS if number else _ABSENT)


@dataclass(frozen=True)
class Reading:
    """The author's word on a file: without ``header`` its columns are "column 1", "column 2"; UTF-8 unless named."""

    header: bool = True
    encoding: str | None = None


AS_WRITTEN: Final = Reading()


@dataclass
class Rows:
    """A file's header, and its further rows as lists of cells; ``notes`` tell what was taken for what."""

    header: list[str]
    cells: Iterator[list[str]]
    separator: str
    notes: list[str] = field(default_factory=list)


@contextmanager
def opened(path: Path | str, names: Sequence[str] = (), reading: Reading = AS_WRITTEN) -> Iterator[Rows]:
    """The rows of a file whose header has ``names``. Raises TableError where it cannot be read."""
    csv.field_size_limit(_LONGEST_CELL)
    western: Counter[str] = Counter()
    try:
        with Path(path).open("rb") as raw:
            head = raw.read(4)
            raw.seek(0)
            if head[:2] == b"\x1f\x8b":
                with gzip.open(raw) as unpacked:
                    head = unpacked.read(4)
                raw.seek(0)
            if head in (b"PK\x03\x04", b"PAR1", b"\xd0\xcf\x11\xe0"):
                kind = "a Parquet file: let its name end in .parquet" if head == b"PAR1" else "a workbook or an archive"
                raise TableError(f"{path}: not a CSV table but {kind}; a sheet can be saved as CSV")
            wide = head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
            encoding = reading.encoding or ("utf-16" if wide else "utf-8-sig")
            errors = "surrogateescape" if encoding == "utf-8-sig" else "replace"
            opener: Any = gzip.open if _is_packed(path, raw) else open
            with opener(path, "rt", encoding=encoding, errors=errors, newline="") as file:
                lines = (_clean(line, western) for line in file)
                rows = _rows(path, lines, names, reading)
                rows.notes += [
                    f"columns are separated by {_SEPARATOR_NAMES[one]}" for one in rows.separator if one != ","
                ]
                rows.notes += ["the file is in UTF-16"] * wide
                yield rows
                if western:
                    rows.notes.append(
                        f"{western['lines']} lines are no UTF-8 and were read as Windows-1252 (Latin-1); "
                        "another encoding is said by --encoding NAME"
                    )
    except FileNotFoundError:
        raise TableError(f"{path}: no such file") from None
    except (OSError, EOFError) as error:
        raise TableError(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def _is_packed(path: Path | str, raw: Any) -> bool:
    return str(path).endswith(".gz") or raw.read(2) == b"\x1f\x8b"


_ESCAPED: Final = re.compile("[\udc80-\udcff]")


def _clean(line: str, western: Counter[str]) -> str:
    """A line without NUL, an error before Python 3.11, and with bytes that are no UTF-8 as those of Windows-1252."""
    line = line.replace("\0", "\ufffd")
    if not line.isascii() and _ESCAPED.search(line):
        western["lines"] += 1
        line = _ESCAPED.sub(lambda byte: bytes([ord(byte[0]) - 0xDC00]).decode("cp1252", "replace"), line)
    return line


def _filled(row: Sequence[str]) -> int:
    return sum(map(bool, map(str.strip, row)))


def _is_regular(width: int, below: Sequence[Sequence[str]]) -> bool:
    """Tell whether most rows have as many cells as a header, or an empty one beside them; in baskets they have not."""
    return 2 * sum(abs(len(row) - width) <= 1 for row in below) > len(below)


def plain_name(name: str) -> str:
    """A column's name without blanks around it, and with one blank in the place of line ends and tabs."""
    return " ".join(name.split())


def _rows(path: Path | str, lines: Iterator[str], names: Sequence[str], reading: Reading) -> Rows:
    first = list(islice(lines, _HEAD_LINES))
    heads = {mark: list(csv.reader(first, delimiter=mark)) for mark in SEPARATORS}
    widths = {mark: Counter(map(len, filter(None, head))).most_common(1) for mark, head in heads.items()}
    guess = max(SEPARATORS, key=lambda mark: widths[mark][0][0] if widths[mark] else 0)
    wanted = set(map(plain_name, names))
    # Of a schema's names, at least two, the first line that has them; a label alone may stand in a title, too.
    found = [
        ((at, -len(row)) if len(wanted) > 1 else (-len(row), at), mark, at)
        for mark, head in heads.items()
        for at, row in enumerate(head)
        if wanted and reading.header and wanted <= set(map(plain_name, row))
        # Above a header are titles, which fill fewer places: a full line there is a row or a header of other names.
        if all(_filled(above) < _filled(row) for above in head[:at])
        if at == 0 or len(wanted) > 1 or _is_regular(len(row), head[at + 1 :])
    ]
    _, mark, at = min(found) if found else (None, guess, None)
    cells = csv.reader(chain(first, lines), delimiter=mark)
    if not reading.header:
        width = max((len(row) for row in heads[mark]), default=0)
        return Rows([f"column {place + 1}" for place in range(width)], filter(None, cells), mark)
    if at is None:
        full = [place for place, row in enumerate(heads[mark]) if row and len(row) == widths[mark][0][0]]
        at = full[0] if full and not wanted else next((place for place, row in enumerate(heads[mark]) if row), 0)
    above = [row for row in islice(cells, at) if any(map(str.strip, row))]
    header = list(map(plain_name, next(cells, [])))
    if not any(header):
        raise TableError(f"{path}: not a CSV table with a header row; it is empty")
    notes = [f"{len(above)} lines above the header were skipped: {', '.join(above[0])}"] if above else []
    return Rows(header, filter(None, cells), mark, notes)


def place_of(path: Path | str, header: Sequence[str], name: str) -> int:
    """The place of a column; TableError, naming the columns that there are, for none or several."""
    plain = plain_name(name)
    if header.count(plain) == 1:
        return header.index(plain)
    if plain in header:
        places = [place + 1 for place, one in enumerate(header) if one == plain]
        raise TableError(
            f"{path}: {len(places)} columns {name!r}, at places {', '.join(map(str, places))}; rename all but one"
        )
    raise TableError(f"{path}: {no_column(header, name)}")


def no_column(header: Sequence[str], name: str) -> str:
    """The sentence that a column is not there, and which are."""
    near = get_close_matches(name.lower(), [one.lower() for one in header], 1)
    meant = next((one for one in header if near and one.lower() == near[0]), None)
    sentence = f"no column {name!r}; the columns are {', '.join(header)}"
    sentence += f"; did you mean {meant!r}?" if meant else ""
    if any("\ufffd" in one for one in header):
        return f"{sentence}; UTF-16 without a mark at its start takes --encoding utf-16-le"
    values = sum(bool(NUMERAL.fullmatch(one)) for one in header)
    return sentence + (
        "; they look like values: a file without a header takes --no-header" if 2 * values > len(header) else ""
    )


def read_csv(path: Path | str, label: str = "", reading: Reading = AS_WRITTEN) -> pd.DataFrame:
    """Every column of a public table as the texts in the file, by name, with :data:`NOTES` in its ``attrs``.

    Columns without a name, or with one that another has, are left out with a note. Raises TableError.
    """
    with opened(path, [label] if label else (), reading) as rows:
        header, width = rows.header, len(rows.header)
        columns: list[list[str]] = [[] for _ in header]
        last: list[str] = []
        longest = width
        while piece := list(islice(rows.cells, 1 << 16)):
            last, longest = piece[-1], max(longest, *(len(row) for row in piece if any(row[width:])), 0)
            filled = [row if len(row) == width else (row + [""] * width)[:width] for row in piece]
            for column, cells in zip(columns, zip(*filled, strict=True), strict=True):
                column.extend(cells)
    if not columns or not columns[0]:
        raise TableError(f"{path}: holds no rows; a table has a header row and at least one more")
    if last[-1].endswith(("\n", "\r")):
        raise TableError(f"{path}: not a CSV table: a quotation mark is not closed, and takes the rest of the file")
    counts = Counter(header)
    repeated = sorted(name for name in counts if name and counts[name] > 1)
    if label:
        place_of(path, header, label)
    notes = [f"{name}: left out: {counts[name]} columns have this name; rename all but one" for name in repeated] + [
        f"column {place + 1}: left out: it has no name; name it in the header to ask about it"
        for place, name in enumerate(header)
        if not name and any(map(str.strip, columns[place]))
    ]
    if longest > width:
        notes.append(
            f"some rows have up to {longest} cells, the header {width}: what is beyond the header was left out"
        )
    if reading.header and (about := _looks_like_values(header, columns)):
        notes.insert(0, about)
    texts = {name: columns[place] for place, name in enumerate(header) if name and counts[name] == 1}
    frame = pd.DataFrame(texts, dtype=str)
    frame.attrs = {NOTES: (*notes, *rows.notes), MARK: _mark(rows.separator)}
    return frame


def _looks_like_values(header: Sequence[str], columns: Sequence[Sequence[str]]) -> str | None:
    """A warning where most names are numbers, other than 0, 1, 2, ..., or stand among the first values."""
    named = [(name, set(column[:100])) for name, column in zip(header, columns, strict=True) if name]
    counted = [name for name, _ in named if not name.isdigit() or int(name) > len(named)]
    odd = [name for name, cells in named if name in cells or (counted and NUMERAL.fullmatch(name))]
    if 2 * len(odd) <= len(named):
        return None
    return f"the header looks like a row ({', '.join(odd[:4])}): a file without a header takes --no-header"


def _mark(separator: str) -> str:
    return "," if separator == ";" else "."


Seen = Callable[[Mapping[str, "pd.Series[Any]"], Mapping[str, "pd.Series[Any]"], int], None]
"""A function that looks at a piece: its columns as they stand in the file, as they are read, and its rows."""


def read_pieces(
    path: Path,
    label: Label,
    features: Sequence[Feature],
    rows: int,
    reading: Reading = AS_WRITTEN,
    seen: Seen | None = None,
) -> Iterator[tuple[pd.DataFrame, pd.Series[Any]]]:
    """Feature columns and labels, ``rows`` at a time, at least one piece, each shown to ``seen``. Raises TableError
    for a missing column.
    """
    names = [*(one.name for one in features), label.name]
    with opened(path, names, reading) as found:
        places = {name: place_of(path, found.header, name) for name in names}
        mark = _mark(found.separator)
        piece = list(islice(found.cells, rows))
        while True:
            cells = {
                name: pd.Series([line[at] if at < len(line) else None for line in piece], dtype=object, name=name)
                for name, at in places.items()
            }
            labels = declared_texts(label, cells[label.name])
            parsed = {one.name: cells_of(one, cells[one.name], mark) for one in features}
            if seen is not None:
                seen(cells, {label.name: labels, **parsed}, len(piece))
            yield pd.DataFrame(parsed), labels
            piece = list(islice(found.cells, rows))
            if not piece:
                break


def cells_of(feature: Feature, column: pd.Series[Any], mark: str) -> pd.Series[Any]:
    """The cells of a column, each by itself: numbers as doubles, NaN for none; texts as :func:`declared_texts`."""
    if feature.number is None:
        return declared_texts(feature, column)
    parsed = numbers(column)
    for row in np.flatnonzero(np.isnan(parsed)).tolist():
        parsed[row] = formatted(column.iloc[row], mark)
    return pd.Series(parsed, index=column.index, name=column.name)


def declared_texts(domain: Label | Feature, column: pd.Series[Any]) -> pd.Series[Any]:
    """The cells of a column, each as the declared text that it means, blanks around it or not; others as they are."""
    declared = domain.classes if isinstance(domain, Label) else domain.names
    positions = positions_of(declared)

    def meant(text: Any) -> Any:
        found = position_of(text, positions)
        if found is None and isinstance(text, str):
            found = position_of(text.strip(), positions)
        return text if found is None else declared[found]

    codes, different = pd.factorize(column)
    means = np.array([*map(meant, different.tolist()), None], dtype=object)
    return pd.Series(means[codes], index=column.index, name=column.name, dtype=object)


_SIGNS: Final = "$€£¥₹%"


def formatted(text: Any, mark: str) -> float:
    """The number in a text as people write it, NaN where there is none: ``1,234``, ``$84,835.00``, ``12%``, ``2,6``.

    A comma or a point before groups of three digits is ``mark``'s opposite where both readings are possible.
    """
    if not isinstance(text, str) or not any(map(str.isdigit, text)):
        return float("nan")
    for one in (mark, "," if mark == "." else "."):
        number = strictly_formatted(text, one)
        if number == number:
            return number
    return float("nan")


_GROUPED: Final = {
    mark: re.compile(rf"([+-]?)([0-9]{{1,3}}(?:[{other}'’ \u00a0\u202f][0-9]{{3}})+|[0-9]*)(?:[{mark}]([0-9]*))?")
    for mark, other in ((".", ","), (",", "."))
}


def strictly_formatted(text: str, mark: str) -> float:
    """The number in a text whose decimal mark is known, NaN where there is none. A plain numeral is itself."""
    plain = number_of(text)
    if plain is not None:
        return plain
    bare, negative = text.strip(), text.strip().startswith("(")
    if negative and bare.endswith(")"):
        bare = bare[1:-1]
    sign = bare[:1] if bare[:1] in "+-" else ""
    bare = sign + bare.removeprefix(sign).strip(_SIGNS + " \t\u00a0\u202f")
    found = _GROUPED[mark].fullmatch(bare)
    if not found or not (found[2] or found[3]):
        return float("nan")
    number = float(f"{found[1]}{re.sub('[^0-9]', '', found[2]) or 0}.{found[3] or 0}")
    return -number if negative else number


def whole_column(texts: Sequence[str], mark: str) -> tuple[dict[str, float], str] | None:
    """The numbers of different texts and how they are written, where *all* are numbers, written in one way."""
    parsed = numbers(pd.Series(list(texts), dtype=object)).tolist()
    plain = {text: number for text, number in zip(texts, parsed, strict=True) if number == number}
    if len(plain) == len(texts):
        return plain, ""
    signs = {sign for text in texts for sign in _SIGNS if sign in text}
    if len(signs) > 1 or ("%" in signs and not all("%" in text for text in texts)):
        return None
    for one in (mark, "," if mark == "." else "."):
        read = {text: strictly_formatted(text, one) for text in texts}
        if all(number == number for number in read.values()):
            # 1.234 among 1.234,5 is not known to be a plain numeral.
            if (
                one == ","
                and any("." in text for text in plain)
                and any("." in text for text in texts if text not in plain)
            ):
                return None
            odd = next(text for text in texts if text not in plain)
            said = f"numbers written as {odd.strip()!r}" + (" (decimal commas)" if one == "," else "")
            if one != mark and any(formatted(text, mark) != number for text, number in read.items()):
                said += "; 'fit' and 'node' take each cell alone and some for others: write them with decimal points"
            return read, said
    return None


def canonical(text: str) -> str:
    """A listed text without blanks around it, and a whole number without the zeros behind its point."""
    return digits_of(text.strip())
