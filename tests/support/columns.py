"""Columns of every dtype that pandas has for cells of some kind, and cells of every kind, for property tests."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
from hypothesis import strategies as st

WHOLE = st.integers(-3, 3) | st.sampled_from([2**53, -(2**31), 100])
REAL = st.sampled_from([0.0, -0.0, 1.0, 2.0, 0.5, 2.5, -1.0, 1e-7, 1e300, float("inf"), float("nan"), 0.1])
_WORDS = ["red", "Caf\u00e9", "Cafe\u0301", "missing", "nan", "true", "True"]
TEXTS = st.sampled_from(["0", "1", "2.5", "1.0", " 1 ", "", "4e1", "0.5", *_WORDS])
TRUTHS = st.booleans()
_OF_PYTHON = [None, Decimal("1.0"), Decimal("NaN"), Fraction(1, 2), 10**30, 10**400, 1j, b"1", (1,), object]
_OF_NUMPY = [np.float32(0.5), np.int8(1), np.bool_(True), np.timedelta64(1, "ns"), np.datetime64("2020-01-01")]
ODD = st.sampled_from([*_OF_PYTHON, *_OF_NUMPY, pd.NA, pd.NaT, pd.Timestamp(0)])
ANYTHING = WHOLE | REAL | TEXTS | TRUTHS | ODD


_arrow = pd.ArrowDtype
KINDS = {
    "whole": (WHOLE, ("int64", "float64", "Int64", "Float64", "category", _arrow(pa.int64()), _arrow(pa.float64()))),
    "small": (st.integers(0, 3), ("int8", "uint64", "float16", "float32", np.longdouble, "Int8", "Sparse[int64]")),
    "whole or none": (WHOLE | st.none(), ("float64", "Int64", "Float64", "category", _arrow(pa.int64()))),
    "real": (REAL, ("float64", "Float64", "category", np.longdouble, _arrow(pa.float64()), "Sparse[float64]")),
    "text": (
        TEXTS,
        ("str", "string[python]", "string[pyarrow]", "category", _arrow(pa.string()), _arrow(pa.large_string())),
    ),
    "text or none": (TEXTS | st.none(), ("str", "string[python]", "string[pyarrow]", "category", _arrow(pa.string()))),
    "truth": (TRUTHS, ("bool", "boolean", "category", _arrow(pa.bool_()))),
    "truth or none": (TRUTHS | st.none(), ("boolean", "category", _arrow(pa.bool_()))),
    "decimal": (st.sampled_from([Decimal("1.00"), Decimal("2.50"), None]), (_arrow(pa.decimal128(8, 2)), "category")),
    "time": (
        st.sampled_from([0, 1]),
        ("timedelta64[ns]", "datetime64[ns]", _arrow(pa.timestamp("us")), _arrow(pa.date32())),
    ),
    "complex": (st.sampled_from([0, 1, 1j]), ("complex128",)),
    "list": (st.sampled_from([[1], []]), (_arrow(pa.list_(pa.int64())),)),
    "anything": (ANYTHING, ()),
}
"""Cells, and the dtypes that hold them besides ``object`` and the one that pandas infers."""


@st.composite
def columns(draw, size=None):
    """A column of one of :data:`KINDS`, of ``size`` cells or of up to eight."""
    cells, dtypes = KINDS[draw(st.sampled_from(sorted(KINDS)))]
    values = draw(st.lists(cells, min_size=size or 0, max_size=8 if size is None else size))
    dtype = draw(st.sampled_from([object, *dtypes]))
    return pd.Series(values, dtype=dtype)
