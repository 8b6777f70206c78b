"""`import_csv`: types, target tables and refusals."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from servers.common.sql.errors import SqlError
from servers.common.sql.importing.files import text_opener
from servers.common.sql.importing.imports import Import, ImportResult
from servers.common.sql.importing.tables import FormatRequest
from servers.common.sql.write.consent import Consent, Figures
from servers.sqlite.engine.deadline import Limits
from servers.sqlite.write import importing
from servers.sqlite.write.session import write
from tests.servers.sqlite.writing import SCHEMA, opened


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "data.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA)
    return path


@pytest.fixture
def db(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


async def run_import(
    path: Path,
    table: str,
    csv: str,
    form: FormatRequest = FormatRequest(),  # noqa: B008
    limits: Limits = Limits(),  # noqa: B008
) -> ImportResult:
    async with opened(path, limits) as database:
        work = partial(importing.import_csv, Import(table, text_opener(csv), form), Consent())
        done = await write(database, work)
    assert not isinstance(done, Figures)
    return done


async def get_refusal(path: Path, table: str, csv: str, form: FormatRequest = FormatRequest()) -> str:  # noqa: B008
    """Returns the error of the import, which changes nothing."""
    with closing(sqlite3.connect(path)) as connection:
        before = list(connection.iterdump())
        with pytest.raises(SqlError) as raised:
            await run_import(path, table, csv, form)
        assert list(connection.iterdump()) == before
    return f"{raised.value.code}: {raised.value}"


TYPES: list[tuple[list[str], str, list[Any]]] = [
    (["1", "-20", "0"], "INTEGER", [1, -20, 0]),
    (["9223372036854775807", "-9223372036854775808"], "INTEGER", [2**63 - 1, -(2**63)]),
    (["9223372036854775808"], "TEXT", ["9223372036854775808"]),
    (["007", "1"], "TEXT", ["007", "1"]),
    (["+1"], "TEXT", ["+1"]),
    ([" 1"], "INTEGER", [1]),
    (["1_000"], "TEXT", ["1_000"]),
    (["\u0661"], "TEXT", ["\u0661"]),
    (["1.5", "2", "-0.25", "-0"], "REAL", [1.5, 2.0, -0.25, 0.0]),
    (["2", "1.5"], "REAL", [2.0, 1.5]),
    (["999999999999999", "1.5"], "REAL", [999999999999999.0, 1.5]),
    (["9007199254740993", "1.5"], "TEXT", ["9007199254740993", "1.5"]),
    (["9.50", "10.50", "100.00"], "REAL", [9.5, 10.5, 100.0]),
    ([".5", "5.", "+1.5", "1e-05"], "REAL", [0.5, 5.0, 1.5, 0.00001]),
    (["1e5"], "TEXT", ["1e5"]),
    (["1e5", "0.5"], "REAL", [100000.0, 0.5]),
    (['"1,234"', "56", '"1,234,567"'], "INTEGER", [1234, 56, 1234567]),
    (['"1,234.50"', "7"], "REAL", [1234.5, 7.0]),
    (["nan", "inf"], "TEXT", ["nan", "inf"]),
    (["1", "x", "2"], "TEXT", ["1", "x", "2"]),
    (["1", "", "2"], "INTEGER", [1, None, 2]),
    (["1", "NA", "  "], "INTEGER", [1, None, None]),
    (["NA", "a"], "TEXT", ["NA", "a"]),
    (["", ""], "TEXT", [None, None]),
    (['""', "a"], "TEXT", [None, "a"]),
    (["TRUE", "false"], "BOOLEAN", [1, 0]),
    (["yes", "no"], "TEXT", ["yes", "no"]),
    (["2024-02-29"], "TEXT", ["2024-02-29"]),
    (["31/12/2024", "1/2/2024"], "TEXT", ["2024-12-31", "2024-02-01"]),
    (["1/2/2024"], "TEXT", ["1/2/2024"]),
]


async def test_a_new_table_has_lossless_types(path: Path, db: sqlite3.Connection) -> None:
    results = []
    for fields, *_ in TYPES:
        table = f"new{len(results)}"
        done = await run_import(path, table, "n,v\n" + "".join(f"{n},{field}\n" for n, field in enumerate(fields)))
        assert (done.created, done.rows, done.columns[0]) == (True, len(fields), ("n", "INTEGER"))
        results.append((fields, done.columns[1][1], [value for (value,) in db.execute(f"SELECT v FROM {table}")]))
    assert results == TYPES


@pytest.mark.parametrize(
    ("parts", "kind"),
    [(["1", "9007199254740993", "1", "1.5"], "TEXT"), (["1.50", "1"], "REAL"), (["1", "x", "1"], "TEXT")],
)
async def test_a_type_fits_all_rows(path: Path, parts: list[str], kind: str) -> None:
    done = await run_import(path, "new", "v\n" + "".join(f"{part}\n" * 2_000 for part in parts))
    assert done.columns == [("v", kind)]


async def test_quotes_line_ends_and_a_byte_order_mark_are_parsed(path: Path, db: sqlite3.Connection) -> None:
    await run_import(path, "new", '\ufeffa;"b c"\r\n"x;""y""\r\nz";1\r\n\r\nlast;2', FormatRequest(";"))
    assert db.execute('SELECT a, "b c" FROM new').fetchall() == [('x;"y"\r\nz', 1), ("last", 2)]


async def test_without_a_header_the_columns_are_numbered(path: Path, db: sqlite3.Connection) -> None:
    await run_import(path, "new", "1\tx\n2\ty\n", FormatRequest("\t", header=False))
    assert db.execute("SELECT c1, c2 FROM new").fetchall() == [(1, "x"), (2, "y")]


async def test_sql_in_table_and_column_names_is_not_run(path: Path, db: sqlite3.Connection) -> None:
    await run_import(path, 'a"); DROP TABLE t; --', '"b"" TEXT); DROP TABLE t; --"\n1\n')
    assert db.execute('SELECT "b"" TEXT); DROP TABLE t; --" FROM "a""); DROP TABLE t; --"').fetchall() == [(1,)]
    assert db.execute("SELECT count(*) FROM t").fetchone() == (2,)


async def test_an_existing_table_gets_rows_by_column_names(path: Path, db: sqlite3.Connection) -> None:
    done = await run_import(path, "T", "B,a\nx,7\n,08\n")
    assert (done.created, done.columns) == (False, [("b", "TEXT"), ("a", "INTEGER")])
    assert db.execute("SELECT * FROM t WHERE a > 2").fetchall() == [(7, "x"), (8, None)]


async def test_text_columns_store_fields_unchanged(path: Path, db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE typed (day VARCHAR(10), code TEXT, price NUMERIC, zip INTEGER)")
    done = await run_import(path, "typed", 'day,code,price,zip\n31/12/2024,"1,234","1,234.5",007\n1/1/2025,NA,NA,1\n')
    assert db.execute("SELECT * FROM typed").fetchall() == [
        ("31/12/2024", "1,234", 1234.5, 7),
        ("1/1/2025", "NA", None, 1),
    ]
    assert done.decisions[1:] == [
        "read as NULL, like empty fields: 'NA' (1)",
        "written in another form: price as decimal",
        "passed to the table unchanged: zip (leading zeros: '007' in row 1, though the column is declared INTEGER)",
    ]


async def test_dates_of_a_second_file_have_the_same_form(path: Path, db: sqlite3.Connection) -> None:
    await run_import(path, "new", "day,price\n31/12/2024,1.5\n")
    await run_import(path, "new", "day,price\n30/1/2025,2\n")
    assert db.execute("SELECT * FROM new").fetchall() == [("2024-12-31", 1.5), ("2025-01-30", 2.0)]


async def test_empty_rows_at_the_end_are_not_inserted(path: Path, db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE filled (a INTEGER NOT NULL, b INTEGER)")
    done = await run_import(path, "filled", "a,b\n1,2\n" + ",\n" * 3_000)
    assert (done.rows, db.execute("SELECT * FROM filled").fetchall()) == (1, [(1, 2)])


async def test_text_for_a_column_of_numbers_is_reported(path: Path, db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE mixed (zip STRING, n INTEGER, day REAL, note VARCHAR)")
    done = await run_import(path, "mixed", "zip,n,day,note\n007,many,2024-01-02,x\n")
    assert db.execute("SELECT * FROM mixed").fetchall() == [(7, "many", "2024-01-02", "x")]
    assert done.decisions[1:] == [
        "passed to the table unchanged: zip (leading zeros: '007' in row 1, though the column is declared STRING); "
        "n (text, though the column is declared INTEGER)",
        "note: day (date, though the column is declared REAL)",
    ]


async def test_more_than_2000_columns_are_refused(path: Path) -> None:
    error = await get_refusal(path, "new", ",".join(f"c{n}" for n in range(2_001)) + "\n")
    assert error.startswith("too_large: the file has 2,001 columns, and a table can have at most 2,000. Import")


async def test_rows_are_imported_into_a_full_text_table(path: Path, db: sqlite3.Connection) -> None:
    await run_import(path, "docs", "body\nhello world\n")
    assert db.execute("SELECT * FROM docs WHERE docs MATCH 'world'").fetchall() == [("hello world",)]


WRONG = [
    ("", "bad_csv: there are no rows"),
    ("a,b\n3,x\n4,y,z\n", "bad_csv: row 2, line 3: it has 3 fields, but there are 2 columns"),
    ('a,b\n3,"x\ny"\n1,z\n', "constraint: row 2, line 4: SQLite refuses it (SQLITE_CONSTRAINT"),
    ('a,b\n3,"x', "bad_csv: "),
    ('a,b\n3,x\n4,"y"z\n', "bad_csv: row 2, line 3: ',' expected after '\"'"),
    ("a,c\n1,2\n", "bad_csv: the first row names a column that the table does not have:"),
    ("a,A\n1,2\n", "bad_csv: the first row names a column that the table does not have:"),
    ("a,\n1,2\n", "bad_csv: the first row names a column that the table does not have:"),
    ("a,b\nx,y\n", "bad_value: row 1, line 2: SQLite refuses it (SQLITE_MISMATCH)"),
    ("a,b\n3,x\n4,\ud800\n", "bad_csv: the text contains half of a surrogate pair"),
]


async def test_an_invalid_row_is_refused_with_its_number(path: Path) -> None:
    errors = {csv: await get_refusal(path, "t", csv) for csv, _ in WRONG}
    assert {csv: errors[csv] for csv, error in WRONG if not errors[csv].startswith(error)} == {}


async def test_without_a_header_the_field_count_must_match_the_columns(path: Path) -> None:
    error = await get_refusal(path, "t", "1,2,3\n", FormatRequest(header=False))
    lines = error.splitlines()
    assert lines[0] == "bad_csv: the first row has 3 fields, but the table has 2 columns:"
    assert lines[2] == "columns of the table: a, b"


async def test_system_tables_and_views_are_refused(path: Path) -> None:
    for table, column in (("sqlite_schema", "sql"), ("sqlite_new", "a"), ("seen", "a")):
        assert (await get_refusal(path, table, f"{column}\n1\n")).startswith("bad_statement: ")


async def test_a_field_beyond_the_limit_is_refused(path: Path) -> None:
    assert "field larger than field limit" in await get_refusal(
        path, "t", "a,b\n3," + "x" * 2_000, FormatRequest(field_bytes=1_000)
    )


async def test_an_import_times_out(path: Path, db: sqlite3.Connection) -> None:
    with pytest.raises(SqlError, match="stopped after"):
        await run_import(path, "new", "a\n" + "1\n" * 300_000, limits=Limits(timeout=0.02))
    assert db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'new'").fetchone() == (0,)


@pytest.mark.parametrize("second", ["a\nx\n", "a,b\n1,2\n"])
async def test_a_file_changed_during_the_import_is_refused(path: Path, second: str) -> None:
    first = text_opener("a\n1\n")
    texts = iter([first, first, text_opener(second)])
    async with opened(path) as database:
        work = partial(importing.import_csv, Import("new", lambda: next(texts)(), FormatRequest()), Consent())
        with pytest.raises(SqlError, match="the file was changed while it was being imported"):
            await write(database, work)


LARGE = """
import asyncio, resource, sys
from functools import partial
from pathlib import Path
from servers.sqlite.engine.deadline import Limits
from servers.sqlite.write import importing
from servers.common.sql.write.consent import Consent
from servers.common.sql.importing.files import find_version, file_opener
from servers.common.sql.importing.imports import Import
from servers.common.sql.importing.tables import FormatRequest
from servers.sqlite.write.session import write
from tests.servers.sqlite.writing import opened

async def main(path):
    async with opened(path, Limits(timeout=100)) as database:
        opener = file_opener(path.parent, "large.csv", find_version(path.parent, "large.csv"))
        request = Import("new", opener, FormatRequest())
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        done = await write(database, partial(importing.import_csv, request, Consent()))
        print(done.rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)

asyncio.run(main(Path(sys.argv[1])))
"""


@pytest.mark.slow
def test_a_large_file_takes_little_memory(path: Path, tmp_path: Path) -> None:
    line = ",".join(["text " * 10] * 9)
    with (tmp_path / "large.csv").open("w") as file:
        file.write(",".join("abcdefghij") + "\n")
        file.writelines(f"{n},{line}\n" for n in range(220_000))
    assert (tmp_path / "large.csv").stat().st_size > 100_000_000
    done = subprocess.run([sys.executable, "-c", LARGE, str(path)], capture_output=True, text=True, check=True)
    rows, kibibytes = map(int, done.stdout.split())
    assert (rows, kibibytes < 40_000) == (220_000, True)
