"""What a value means follows from the value, as docs/values.md says, and nothing that a record can hold raises."""

import datetime
import enum
import math
import re
import struct
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_draft import TABLE_DRAFT
from records import Watched

from ldp_client.problems import record_problems
from ldp_protocols import Campaign
from ldp_protocols.document.schema import Label
from ldp_protocols.features import CategoricalFeature
from ldp_protocols.values import composed, held, number_of, text_of

numpy = pytest.importorskip("numpy")
pandas = pytest.importorskip("pandas")
NAMES = {module.__name__: module for module in (datetime, numpy, pandas)} | {"Decimal": Decimal, "Fraction": Fraction}


class Hostile:
    """Raises whatever is asked of it."""

    def _refuse(self, *args, **kwargs):
        raise RuntimeError("asked")

    __float__ = __index__ = __int__ = __eq__ = __lt__ = __hash__ = __str__ = __repr__ = __bool__ = __len__ = _refuse
    __iter__ = __getattr__ = __format__ = as_integer_ratio = _refuse


class HostileText(Hostile, str):
    """A text, whatever its methods say."""


class HostileInteger(Hostile, int):
    """A number, whatever its methods say."""


class HostileFloat(Hostile, float):
    pass


class Liar:
    """Claims a class it has not."""

    @property
    def __class__(self):
        raise RuntimeError("asked")


class Colour(str, enum.Enum):  # noqa: UP042 - what code from before StrEnum has
    RED = "red"


NO_MEANING = [
    *(None, float("nan"), Decimal("NaN"), Decimal("sNaN"), [], ["1"], {}, {"1"}, b"1", 1j, object(), Hostile),
    *(datetime.date(2020, 1, 1), datetime.timedelta(1)),
    *(pandas.NA, pandas.NaT, pandas.Timedelta(1), pandas.Interval(0, 1)),
    *(numpy.timedelta64(1, "ns"), numpy.timedelta64(1, "D"), numpy.datetime64("2020-01-01"), numpy.complex128(1 + 1j)),
    *(numpy.float32("nan"), numpy.array([1]), numpy.array(1), pandas.Series([1]), type, len, bool, HostileFloat(1)),
]


def test_not_even_what_lies_about_its_class_or_refuses_everything_raises():
    """Made here: pytest could not carry them."""
    for value in (Hostile(), Liar()):
        assert text_of(value) is None
        assert number_of(value) is None


@pytest.mark.parametrize("value", NO_MEANING, ids=lambda value: type(value).__name__)
def test_what_is_neither_a_text_nor_a_number_is_missing_and_raises_nothing(value):
    assert text_of(value) is None
    assert number_of(value) is None


@pytest.mark.parametrize(
    "value",
    [
        *("1", 1, 1.0, True, Decimal(1), Decimal("1.0"), Decimal("10E-1"), Fraction(1), Fraction(2, 2)),
        *(numpy.int8(1), numpy.uint64(1), numpy.float16(1), numpy.float32(1), numpy.float64(1), numpy.longdouble(1)),
        *(1 + 0j, numpy.complex64(1), HostileText("1")),
        *(numpy.bool_(True), numpy.str_("1"), pandas.array([1], dtype="Int64")[0], HostileInteger(1)),
        *(pandas.array([True], dtype="boolean")[0], pandas.array([1], dtype="float64[pyarrow]")[0]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_declared_1_is_met_by_every_1(value):
    assert CategoricalFeature("f", ("0", "1")).index_of(value) == 1
    assert Label("y", ("0", "1")).index_of(value) == 1
    assert number_of(value) == 1.0


@given(st.floats() | st.binary(min_size=8, max_size=8).map(lambda bits: struct.unpack("<d", bits)[0]))
def test_the_text_of_a_double_is_that_double_again_in_digits_a_point_and_a_sign(number):
    text = text_of(number)
    assert (number_of(number) is None) == math.isnan(number)
    if text is None:
        assert not 1e-170 < abs(number) < 1e199
        assert number != 0
    else:
        assert float(text) == number == number_of(text)
        assert set(text) <= set("-0123456789.")
        assert len(text) <= 200


@given(st.one_of(st.integers(-(10**25), 10**25), st.floats(allow_nan=False), st.fractions(), st.booleans()))
def test_equal_numbers_mean_the_same_whatever_their_type(number):
    alike = [number]
    if isinstance(number, (int, float)) and math.isfinite(number):
        alike += [Decimal(number), Fraction(number)]
        alike += [numpy.float64(number)] if float(number) == number else []
    assert {text_of(one) for one in alike} == {text_of(number)}
    assert {number_of(one) for one in alike} == {number_of(number)}


@pytest.mark.parametrize("digits", [1, 15, 16, 17, 27, 28, 29, 60, 199, 200, 201])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_whole_number_is_its_digits_exactly_up_to_two_hundred_of_them_whatever_holds_it(digits, sign):
    for whole in (sign * 10 ** (digits - 1), sign * (10**digits - 1), sign * (10 ** (digits - 1) + 1)):
        text = str(whole) if digits <= 200 else None
        assert {text_of(held) for held in (whole, Decimal(whole), Fraction(whole), Decimal(f"{whole}.0"))} == {text}


@pytest.mark.parametrize("kind", [int, Decimal, Fraction])
def test_a_number_beyond_a_double_is_infinite_on_its_side(kind):
    assert number_of(kind(10**400)) == math.inf
    assert number_of(kind(-(10**400))) == -math.inf


@given(
    st.one_of(
        st.text(),
        st.text("0123456789+-.eE \t_infaxI"),
        st.from_regex(r"[ \t]*[+-]?[0-9.]+(e-?[0-9]+)?", fullmatch=True),
    )
)
def test_a_text_is_a_number_where_python_reads_one_in_decimal_digits(text):
    number = number_of(text)
    if number is not None:
        assert number == float(text)
    elif len(text) <= 200 and set(text) <= set("0123456789+-.eE \t"):
        with pytest.raises(ValueError, match="could not convert"):
            float(text)


def test_a_text_subclass_is_its_text():
    assert text_of(Colour.RED) == "red"
    assert type(text_of(Colour.RED)) is str
    assert text_of(HostileText("Cafe\u0301")) == composed("Cafe\u0301") == "Caf\u00e9"
    assert number_of(HostileText("2")) == 2


@pytest.mark.parametrize(
    "error", [KeyError("x"), RuntimeError("x"), RecursionError(), MemoryError(), OSError()], ids=repr
)
def test_a_value_that_cannot_be_read_is_missing_but_an_interrupt_is_none(error):
    assert held(Watched({"flag": error}), "flag") is None
    with pytest.raises(KeyboardInterrupt):
        held(Watched({"flag": KeyboardInterrupt()}), "flag")


PAGE = (Path(__file__).resolve().parents[2] / "docs" / "values.md").read_text(encoding="utf-8")
ROWS = [line.strip("|").split("|") for line in PAGE.partition("\n## ")[0].splitlines() if line.startswith("| `")]


def evaluated(cell):
    """The values between backticks; ``none`` is None."""
    return [None] if cell.strip() == "none" else [eval(code, dict(NAMES)) for code in re.findall(r"`([^`]*)`", cell)]


@pytest.mark.parametrize(("held", "text", "number"), ROWS)
def test_every_row_of_the_pages_table_is_true(held, text, number):
    values, texts, (wanted,) = evaluated(held), evaluated(text), evaluated(number)
    texts = texts * len(values) if len(texts) == 1 else texts
    assert [text_of(value) for value in values] == texts
    assert [number_of(value) for value in values] == [wanted] * len(values)


def test_the_pages_table_has_rows_and_its_example_prints_what_it_says(capsys):
    assert len(ROWS) == 14
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(example, {"campaign": Campaign.compile(TABLE_DRAFT), "record_problems": record_problems})
    assert capsys.readouterr().out.splitlines() == re.findall(r"# (.*)", example)
