"""A cell is read by itself and by place; how numbers are written for people; what a schema says of a header."""

import math

import pandas as pd
import pytest

from ldp_aggregator.trainers.reading import (
    Reading,
    TableError,
    formatted,
    no_column,
    opened,
    read_csv,
    strictly_formatted,
    whole_column,
)
from ldp_aggregator.trainers.schemas import Schema, read_chunks, read_table

SCHEMA = Schema.read(
    {
        "label": {"name": "y", "classes": ["1", "no"]},
        "features": [
            {"name": "size of it", "kind": "continuous", "low": 0, "high": 9},
            {"name": "g", "kind": "categorical", "values": [" a", "b"]},
        ],
    }
)


@pytest.mark.parametrize(
    ("text", "mark", "number"),
    [
        ("1,234", ".", 1234),
        ("1,234", ",", 1.234),
        ("1.234", ",", 1.234),
        ("2,6", ".", 2.6),
        ("1.234,5", ".", 1234.5),
        ("1,234,567.25", ",", 1234567.25),
        ("$84,835.00 ", ".", 84835),
        ("-$5", ".", -5),
        ("$-5", ".", -5),
        ("(1,250)", ".", -1250),
        ("12%", ".", 12),
        ("3,50 €", ",", 3.5),
        ("1 234", ".", 1234),
        ("1\u202f234,5", ".", 1234.5),
        ("1'000", ".", 1000),
        (",5", ",", 0.5),
        ("1,23,456", ".", None),
        ("12,34.5", ".", None),
        ("1/2/2020", ".", None),
        ("2000_01", ".", None),
        ("\u0663", ".", None),
        ("1e5", ".", 1e5),
        ("5 kg", ".", None),
        ("$", ".", None),
        ("", ".", None),
        (None, ".", None),
    ],
)
def test_numbers_as_people_write_them(text, mark, number):
    found = formatted(text, mark)
    assert math.isnan(found) if number is None else found == number


def test_a_column_is_written_in_one_way_or_is_none_of_numbers():
    assert whole_column(["1,234", "2,6"], ".")[0] == {"1,234": 1.234, "2,6": 2.6}
    assert "'fit' and 'node' take each cell alone" in whole_column(["1,234", "2,6"], ".")[1]
    assert "alone" not in whole_column(["1,234", "2,6"], ",")[1]
    assert whole_column(["1,234", "26"], ".")[0] == {"1,234": 1234, "26": 26}
    assert whole_column(["1", "2.5"], ",") == ({"1": 1, "2.5": 2.5}, "")
    assert whole_column(["12%", "0.5"], ".") is None
    assert whole_column(["$1", "€1"], ".") is None
    assert whole_column(["1.234,5", "1.234"], ",") is None, "1.234 may be 1234"
    assert math.isnan(strictly_formatted("1,5", "."))


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_schema_finds_its_header_and_every_cell_means_what_it_means_alone(separator, encoding, end, tmp_path):
    lines = [
        ["Ausgabe für Mai"],
        [],
        ["more", " size  of it", "y", "g"],
        ["é", "1.5", "1.0", " a"],
        ["x", "$2.00", " no ", "a"],
        ["x", "NA", "NO", "b", "beyond"],
        ["x", "'3'"],
    ]
    text = end.join(separator.join(cells) for cells in lines)
    (tmp_path / "t.csv").write_bytes(text.encode(encoding))
    frame, labels = read_table(tmp_path / "t.csv", SCHEMA)
    assert frame["size of it"].fillna(-1).tolist() == [1.5, 2, -1, -1]
    assert frame["g"].tolist() == [" a", "a", "b", None]
    assert labels.tolist() == ["1", "no", "NO", None]
    pieces = [piece for piece, _ in read_chunks(tmp_path / "t.csv", SCHEMA, rows=1)]
    pd.testing.assert_frame_equal(pd.concat(pieces, ignore_index=True), frame)


def test_what_rows_hold_decides_nothing_about_a_header_of_a_schema(tmp_path):
    """A row with more cells, one that repeats the header, and bytes of no encoding change themselves alone."""
    path, header = tmp_path / "t.csv", b"g,size of it,y\n"
    rows = [b"b,1,no\n", b"b,2,1,,,,,\n", b"\xff;\x00,3,no\n", b"g,size of it,y\n", b"b;1;no\n", b'b,"4",no']
    path.write_bytes(header + b"".join(rows))
    whole = read_table(path, SCHEMA)[0]
    for at, row in enumerate(rows):
        path.write_bytes(header + row)
        pd.testing.assert_frame_equal(read_table(path, SCHEMA)[0], whole.iloc[[at]].reset_index(drop=True))


def test_what_is_said_of_a_file_is_taken(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("1,да\n2,нет\n".encode("cp1251"))
    frame = read_csv(path, reading=Reading(header=False, encoding="cp1251"))
    assert frame.to_dict("list") == {"column 1": ["1", "2"], "column 2": ["да", "нет"]}


def test_a_column_that_is_not_there_is_told_with_its_nearest_name():
    assert no_column(["Income", "b"], "income").endswith("did you mean 'Income'?")
    assert no_column(["1.5", "2", "x"], "y").endswith("a file without a header takes --no-header")
    assert no_column(["a\ufffd", "\ufffdb\ufffd"], "a").endswith("takes --encoding utf-16-le")
    assert no_column(["a", "b"], "xyz") == "no column 'xyz'; the columns are a, b"


def test_an_unreadable_file_is_an_error_with_its_name(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"\x1f\x8bnot gzip")
    for path, problem in (
        (tmp_path / "none.csv", "no such file"),
        (tmp_path / "t.csv", "t.csv: "),
        (tmp_path, "directory"),
    ):
        with pytest.raises(TableError, match=problem), opened(path):
            pass
