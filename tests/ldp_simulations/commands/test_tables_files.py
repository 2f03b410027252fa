# ruff: noqa: E501 - the lines of a file stand in one line each
"""Files as people have them, through the real commands: drafted at the first try, and fitted with that draft.

Every file is small and our own; each has the shape of a public one, or of one that spreadsheets and instruments write.
"""

import gzip
import io
import json
import random
import warnings
from typing import NamedTuple

import pandas as pd
import pytest
from buyers import run

from ldp_aggregator.__main__ import main
from ldp_simulations.tables import source_without_schema

ROWS = 60


class File(NamedTuple):
    """A file, the column to learn, its classes, which columns are numbers, which texts, and which are left out."""

    content: bytes
    label: str
    classes: str
    numbers: str = ""
    texts: str = ""
    out: str = ""
    options: tuple[str, ...] = ()
    told: str = ""


def made(header, line, *, rows=ROWS, end="\n", top="", encoding="utf-8", bottom=""):
    """Lines of people: their number, a measure that tells the class, a group, and a class."""
    draw = random.Random(7)
    lines = [] if header is None else [header]
    for i in range(rows):
        yes = draw.random() < 0.4
        lines.append(line(i, round(draw.gauss(60 if yes else 40, 8), 1), draw.choice("abb" if yes else "bcc"), yes))
    return (top + end.join(lines) + end + bottom).encode(encoding)


def yn(yes):
    return "yes" if yes else "no"


def comma(number):
    return str(number).replace(".", ",")


REVIEWED = {
    "passengers, an id and holes": File(
        made("PassengerId,Survived,Sex,Age,Fare", lambda i, w, g, y: f"{i + 1},{int(y)},{g},{w if i % 5 else ''},{w * 2:.3f}"),
        "Survived", "0 1", "Age Fare", "Sex", "PassengerId",
    ),
    "blanks among charges": File(
        made("customerID,tenure,TotalCharges,Churn", lambda i, w, g, y: f"70{i * 37 % 99}-X{i},{i % 30},{' ' if i % 20 == 0 else w},{yn(y)}"),
        "Churn", "no yes", "tenure TotalCharges", out="customerID",
    ),
    "a mark of UTF-8 before the first name": File(
        made("age,sex,target", lambda i, w, g, y: f"{30 + i % 40},{i % 2},{int(y)}", top="\ufeff"), "target", "0 1", "age", "sex"
    ),
    "whole numbers with a point": File(
        made("Unnamed: 0,Credit,Income,Status", lambda i, w, g, y: f"{i},{'' if i % 9 == 0 else f'{i % 2}.0'},{w},{'Y' if y else 'N'}"),
        "Status", "N Y", "Income", "Credit", "Unnamed:_0",
    ),
    "credit without a header": File(
        made(None, lambda i, w, g, y: f"A1{i % 4 + 1},{6 + i % 40},A3{i % 5},{1 + y}"), "column 4", "1 2", "column_2", "column_1 column_3",
        options=("--no-header",),
    ),
    "falls without a header": File(
        made(None, lambda i, w, g, y: f"{i % 6},{w * 1000:.2f},{-1.3e7 if i == 3 else w},{80 + i % 20}"), "column 1", "0 1 2 3 4 5",
        "column_2 column_3 column_4", options=("--no-header",),
    ),
    "employees by number": File(
        made("Age,Attrition,EmployeeNumber,Over18", lambda i, w, g, y: f"{20 + i % 30},{'Yes' if y else 'No'},{1 + i * 3 // 2},Y", top="\ufeff"),
        "Attrition", "No Yes", "Age", out="EmployeeNumber Over18",
    ),
    "oil, numbers as names": File(
        made("f1,f2,target", lambda i, w, g, y: f"{w},{w * w:.1f},{1 if y else -1}"), "target", "-1 1", "f1 f2"
    ),
    "quoted classes, no header": File(
        made(None, lambda i, w, g, y: f"{w},{w / 7:.5f},'{1 if y else -1}'"), "column 3", "'-1' '1'", "column_1 column_2", options=("--no-header",)
    ),
    "an empty last column": File(
        made("id,diagnosis,radius,Unnamed: 32", lambda i, w, g, y: f"{842302 + 977 * i * 31 % 65537},{'M' if y else 'B'},{w},"),
        "diagnosis", "B M", "radius", out="id Unnamed:_32",
    ),
    "ends of lines of old, and NA": File(
        made("male,cigs,totChol,CHD", lambda i, w, g, y: f"{i % 2},{i % 25},{'NA' if i % 8 == 0 else 150 + int(w)},{int(y)}", end="\r"),
        "CHD", "0 1", "cigs totChol", "male", told="say 'NA'",
    ),
    "question marks, no header": File(
        made(None, lambda i, w, g, y: f"{'?' if i % 7 == 0 else w},{'?' if i % 9 == 0 else i % 4},{'?' if i == 5 else 1 + y}"), "column 3", "1 2",
        "column_1", "column_2", options=("--no-header",), told="rows without column 3, left out: 1",
    ),
    "customers by row and id": File(
        made("RowNumber,CustomerId,Surname,CreditScore,Exited", lambda i, w, g, y: f"{i + 1},{15600000 + i * 7919 % 65537},N{i},{300 + int(w * 5)},{int(y)}"),
        "Exited", "0 1", "CreditScore", out="RowNumber CustomerId Surname",
    ),
    "incomes in dollars and dates": File(
        made("Income,Dt_Customer,Response", lambda i, w, g, y: f'"${round(w * 1000) + i:,}.00 ",{1 + i % 12}/{1 + i % 28}/{10 + i % 5},{int(y)}', top="\ufeff"),
        "Response", "0 1", "Income", out="Dt_Customer", told="$",
    ),
    "gender NA": File(
        made("gradyear,gender,age,friends,music", lambda i, w, g, y: f"{2006 + i % 4},{('M', 'F', 'NA')[i % 3]},{'NA' if i % 6 == 0 else w},{i * 7 % 50},{int(y)}"),
        "music", "0 1", "age friends", "gradyear gender",
    ),
    "sensors": File(
        made("roll,pitch,class", lambda i, w, g, y: f"{w},{-w},{'ABCDE'[i % 5]}"), "class", "A B C D E", "roll pitch"
    ),
    "semicolons and quotes": File(
        made('"school";"age";"romantic"', lambda i, w, g, y: f'"{g}";{15 + i % 7};"{yn(y)}"'), "romantic", "no yes", texts="age school"
    ),
    "wine": File(
        made('"fixed acidity";"density";"quality"', lambda i, w, g, y: f"{w / 9:.1f};{0.99 + w / 9000:.5g};{5 + y}"), "quality", "5 6", "fixed_acidity density"
    ),
    "air, decimal commas and empty columns": File(
        made("Date;CO(GT);T;High;;", lambda i, w, g, y: f"{1 + i % 28:02}/03/2004;{comma(w)};{comma(w / 3)[:6]};{int(y)};;", bottom=";;;;;\n" * 5),
        "High", "0 1", "CO(GT) T", "Date", told="decimal commas",
    ),
    "a tab behind the class": File(
        made("age,rbc,class", lambda i, w, g, y: f"{'?' if i % 9 == 0 else w},{('normal', '?')[i % 2 and i % 3 == 0]},{'ckd' + chr(9) * (i % 7 == 0) if y else 'notckd'}"),
        "class", "ckd notckd", "age", out="rbc",
    ),
    "a survey in Unicode": File(
        made('Années,"Combien?\nPar mois",Réponse', lambda i, w, g, y: f"{i % 30},{w},{'' if i == 12 else ('été' if y else 'hiver')}"), "Réponse", "hiver été",
        "Années Combien?_Par_mois", told="rows without Réponse, left out: 1, the first is row 13",
    ),
    "Latin-1": File(
        made("Make,Quantity,Région", lambda i, w, g, y: f"\u00a0{g},{i % 40},{'Øst' if y else 'Vest'}", encoding="latin-1"), "Région", "Vest Øst", "Quantity", "Make",
        told="no UTF-8",
    ),
    "NA in each column": File(
        made("education,income,women,type", lambda i, w, g, y: f"{'NA' if i % 5 == 1 else w},{'NA' if i % 4 == 1 else int(w * 100)},{'NA' if i % 9 == 1 else w / 2},{'NA' if i == 7 else ('bc', 'prof')[y]}"),
        "type", "bc prof", "education income women", told="rows without type, left out: 1",
    ),
}  # fmt: skip
"""Of the 24 there is one more below: baskets, of which no column is a label."""

INVENTED = {
    "UTF-16 with tabs, as spreadsheets save Unicode": File(
        made("Größe\tGruppe\tJa", lambda i, w, g, y: f"{comma(w)}\t{g}\t{yn(y)}", encoding="utf-16"), "Ja", "no yes", "Größe", "Gruppe", told="UTF-16"
    ),
    "vertical bars and a report's title": File(
        made("Id|Weight|Sold", lambda i, w, g, y: f"{i * 3}|{w}|{yn(y)}", top="Stock report\n\nprinted on Monday\n"), "Sold", "no yes", "Weight", out="Id",
        told="lines above the header",
    ),
    "a title that fills its line with commas": File(
        made("w,g,sold", lambda i, w, g, y: f"{w},{g},{yn(y)}", top="Export of May,,\n"), "sold", "no yes", "w", "g", told="above the header"
    ),
    "packed, with the ends of lines of Windows": File(
        gzip.compress(made("w,g,sold", lambda i, w, g, y: f"{w},{g},{yn(y)}", end="\r\n")), "sold", "no yes", "w", "g"
    ),
    "percentages": File(made("rate,sold", lambda i, w, g, y: f"{w}%,{yn(y)}"), "sold", "no yes", "rate", told="%"),
    "thousands in quotes, some small": File(
        made("people,sold", lambda i, w, g, y: f'"{int(w * 31) + i:,}",{yn(y)}'), "sold", "no yes", "people"
    ),
    "euros of a German ledger": File(
        made("Umsatz;Ja", lambda i, w, g, y: f"{int(w) + 1}.{100 + i},{i % 10}0 €;{yn(y)}"), "Ja", "no yes", "Umsatz", told="decimal commas"
    ),
    "spaces in thousands, of a French one": File(
        made("ventes;oui", lambda i, w, g, y: f"{int(w)}\u202f{100 + i},5;{yn(y)}"), "oui", "no yes", "ventes"
    ),
    "losses in brackets": File(
        made("profit,sold", lambda i, w, g, y: f'{f"({w})" if i % 3 == 0 else w},{yn(y)}'), "sold", "no yes", "profit"
    ),
    "zip codes": File(
        made("zip,w,sold", lambda i, w, g, y: f"{('00501', '02134', '90210')[i % 3]},{w},{yn(y)}"), "sold", "no yes", "w", "zip"
    ),
    "labels with a point and a hole": File(
        made("w,default", lambda i, w, g, y: f"{w},{'' if i == 2 else float(y)}"), "default", "0 1", "w", told="row 3"
    ),
    "labels in capitals and not": File(
        made("w,sold", lambda i, w, g, y: f"{w},{('Yes', 'YES')[i % 9 == 0] if y else 'No'}"), "sold", "No YES Yes", "w", told="differ by case"
    ),
    "blanks around names and values": File(
        made(" income , group , sold ", lambda i, w, g, y: f" {w} , {g} , {yn(y)} "), "sold", "no yes", "income", "group"
    ),
    "a name that comes twice": File(
        made("w,w,g,sold", lambda i, w, g, y: f"{w},{w + 1},{g},{yn(y)}"), "sold", "no yes", texts="g", told="2 columns have this name"
    ),
    "rows of a frame, without a name": File(
        made(",w,sold", lambda i, w, g, y: f"{i},{w},{yn(y)}"), "sold", "no yes", "w", told="it has no name"
    ),
    "commas at the ends of rows": File(
        made("sex,smoker,heart", lambda i, w, g, y: f"{i % 2},{int(y)},{int(w > 50)},"), "smoker", "0 1", texts="sex heart"
    ),
    "short rows and long ones": File(
        made("w,g,sold,note", lambda i, w, g, y: f"{w},{g},{yn(y)}" + (",ok" if i % 4 else ",late,really" if i % 8 else "")), "sold", "no yes", "w",
        "g note", told="up to 5 cells",
    ),
    "infinities and not a number": File(
        made("ratio,sold", lambda i, w, g, y: f"{('inf', '-inf', 'nan')[i % 3] if i % 6 == 0 else w},{yn(y)}"), "sold", "no yes", "ratio", told="'inf'"
    ),
    "dashes for nothing": File(made("w,sold", lambda i, w, g, y: f"{'-' if i % 5 == 0 else w},{yn(y)}"), "sold", "no yes", "w", told="'-'"),
    "plus and minus as classes": File(made("w,sold", lambda i, w, g, y: f"{w},{'+' if y else '-'}"), "sold", "+ -", "w"),
    "months with underlines": File(
        made("month,w,sold", lambda i, w, g, y: f"{2000 + i}_0{1 + i % 9},{w},{yn(y)}"), "sold", "no yes", "w", out="month"
    ),
    "a number with remarks": File(
        made("dose,w,sold", lambda i, w, g, y: f"{'<0.5' if i == 9 else w / 3},{w},{yn(y)}"), "sold", "no yes", "w", out="dose", told="row 10, '<0.5'"
    ),
    "a quoted line end in a cell": File(
        made("w,note,sold", lambda i, w, g, y: f'{w},"first\nsecond {i}",{yn(y)}'), "sold", "no yes", "w", out="note"
    ),
    "a control character in a value": File(
        made("w,g,h,sold", lambda i, w, g, y: f"{w},{g}\x02{g},{g},{yn(y)}"), "sold", "no yes", "w", "h", "g"
    ),
    "Cyrillic letters of Windows": File(
        made("w,город,да", lambda i, w, g, y: f"{w},{'Омск' if i % 2 else 'Тула'},{'да' if y else 'нет'}", encoding="cp1251"), "да", "да нет", "w", "город",
        options=("--encoding", "cp1251"),
    ),
}  # fmt: skip


def named(names):
    """Names in one text, in which a line below stands for a blank inside of one."""
    return {name if name == "Dt_Customer" else name.replace("_", " ") for name in names.split()}


@pytest.mark.parametrize("name", [*REVIEWED, *INVENTED])
def test_a_file_is_drafted_at_the_first_try_and_fitted_with_that_draft(name, tmp_path, capsys):
    file = (REVIEWED | INVENTED)[name]
    path, out = tmp_path / ("people.csv" + ".gz" * file.content.startswith(b"\x1f\x8b")), tmp_path / "draft.json"
    path.write_bytes(file.content)
    code, said, told = run(capsys, "draft", "--data", path, "--label", file.label, "--json", *file.options)
    assert code == 0, told
    found = json.loads(said)
    features = {one["name"]: one for one in found["draft"]["features"]}
    notes = "\n".join(found["notes"])
    assert found["draft"]["label"]["classes"] == file.classes.split()
    assert {name for name, one in features.items() if one["kind"] == "continuous"} == named(file.numbers)
    assert {name for name, one in features.items() if one["kind"] == "categorical"} == named(file.texts)
    assert set(found["left_out"]) == named(file.out)
    assert all(
        note.startswith(f"{one}: left out: ") for one, note in zip(found["left_out"], found["notes"], strict=False)
    )
    assert file.told in notes
    out.write_text(json.dumps(found["draft"]))
    assert (
        main(["fit", str(path), "--schema", str(out), "--epsilon", "50", "--test", str(path), "--json", *file.options])
        == 0
    )
    captured = capsys.readouterr()
    fitted = json.loads(captured.out)
    assert fitted["undeclared_labels"] <= 6, captured.err
    assert fitted["accuracy"] > 0.15


def readable(name):
    """Files that pandas reads too, in the one way that suits them."""
    file = (REVIEWED | INVENTED)[name]
    return (
        not file.options
        and "long ones" not in name
        and "tabs" not in name
        and "Latin-1" not in name
        and "title" not in name
        and "packed" not in name
    )


@pytest.mark.parametrize("name", [name for name in [*REVIEWED, *INVENTED] if readable(name)])
def test_no_number_of_pandas_is_left_out_without_a_reason_and_no_cell_is_another_columns(name, tmp_path):
    file = (REVIEWED | INVENTED)[name]
    path = tmp_path / "people.csv"
    path.write_bytes(file.content)
    source = source_without_schema(str(path), file.label, epsilon=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rows longer than the header
        separator = ";" if b";" in file.content.splitlines()[0] else ","
        table = pd.read_csv(io.BytesIO(file.content), sep=separator, index_col=False, na_values=["?", "-"])
    told = "\n".join(source.notes)
    for column in map(str, table.columns[table.dtypes.map(pd.api.types.is_numeric_dtype)]):
        plain = " ".join(column.split())
        known = plain in source.people.frame or plain == file.label or f"{plain}: left out: " in told
        assert known or plain.startswith("Unnamed") or plain.split(".")[0] in told, column
        if (
            plain in source.people.frame
            and source.people.frame[plain].dtype == float
            and len(source.people) == len(table)
        ):
            ours, theirs = source.people.frame[plain], table[column].astype(float)
            pd.testing.assert_series_equal(ours, theirs.where(theirs.abs() < float("inf")), check_names=False)


@pytest.mark.parametrize(
    ("content", "label", "problem"),
    [
        (
            b"citrus fruit,bread\nyogurt\nmilk,rice,soda\n",
            "soda",
            "no column 'soda'; the columns are citrus fruit, bread",
        ),
        (b"1.5,2.5,a\n3.5,4.5,b\n", "y", "takes --no-header"),
        (b" Income,g\n1,a\n", "income", "did you mean 'Income'?"),
        (b"w,w\n1,2\n", "w", "2 columns 'w', at places 1, 2; rename all but one"),
        (b"PK\x03\x04rest", "y", "a workbook or an archive; a sheet can be saved as CSV"),
        (b'w,y\n1,"a\n2,b\n', "y", "a quotation mark is not closed"),
        (b"w,y\n1,a\x02\n2,b\n", "y", "column 'y', row 1: 'a\\x02' has a control character"),
    ],
)
def test_what_cannot_be_read_is_told_in_one_line_with_what_to_do(content, label, problem, tmp_path, capsys):
    path = tmp_path / "people.csv"
    path.write_bytes(content)
    code, _, told = run(capsys, "draft", "--data", path, "--label", label)
    assert (code, problem in told, told.count("\n")) == (1, True, 1), told
