"""`import_csv`: types, target tables and refusals."""

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from servers.common.sql.errors import SqlError
from servers.common.sql.importing.imports import ImportResult
from servers.common.sql.importing.tables import FormatRequest
from servers.common.sql.write.consent import Figures
from servers.postgres.engine.deadline import Deadline, Limits
from tests.servers.postgres.databases import Database
from tests.servers.postgres.writing import Writing, writing

_WAITS = """
CREATE TABLE waits (a integer, b text);
CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
  'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END';
CREATE TRIGGER wait BEFORE INSERT ON waits FOR EACH ROW EXECUTE FUNCTION wait()
"""


_FRESH = """
DROP TABLE IF EXISTS typed; CREATE TABLE typed (day date, code text); ALTER TABLE typed OWNER TO owner;
DROP TABLE IF EXISTS made; DROP TABLE IF EXISTS "Sales 2024; --";
TRUNCATE review; INSERT INTO review VALUES (1, 'SKU-0001', 5, NULL), (2, 'SKU-0001', 1, NULL)
"""


@pytest.fixture
async def db(workshop: Database) -> AsyncIterator[Writing]:
    """A database shared by all tests, without the imports of the previous test."""
    workshop.run(_FRESH)
    async with writing(workshop.owner) as db:
        yield db


async def run_import(db: Writing, table: str, csv: str, form: FormatRequest = FormatRequest()) -> ImportResult:  # noqa: B008
    done = await db.import_csv(table, csv, form)
    assert not isinstance(done, Figures)
    return done


async def get_refusal(db: Writing, workshop: Database, table: str, csv: str, **form: Any) -> str:
    """Returns the error of the import, which changes nothing."""
    before = workshop.run("SELECT count(*), (SELECT count(*) FROM review) FROM pg_class")
    with pytest.raises(SqlError) as caught:
        await db.import_csv(table, csv, FormatRequest(**form))
    assert workshop.run("SELECT count(*), (SELECT count(*) FROM review) FROM pg_class") == before
    assert db.commits == []
    return f"{caught.value.code}: {caught.value}"


async def test_a_new_table_has_lossless_types(db: Writing, workshop: Database) -> None:
    csv = "whole,part,text,zero,none\n1,1.5,a,007,\n-2,100.0,1,1,\n,0.1,,2,\n"
    done = await run_import(db, "made", csv)
    assert done[:3] == ("made", True, 3)
    assert done.columns == [
        ("whole", "bigint"),
        ("part", "numeric"),
        ("text", "text"),
        ("zero", "text"),
        ("none", "text"),
    ]
    assert workshop.run("SELECT made::text FROM made") == [("(1,1.5,a,007,)",), ("(-2,100.0,1,1,)",), ("(,0.1,,2,)",)]


async def test_any_text_is_imported_unchanged(db: Writing, workshop: Database) -> None:
    fields = ["\\N", "\\.", "a\tb", "a\nb", "a\r\nb", "\\", 'a "quoted" word', "🐘", "\\x41", " "]
    csv = "one,two\n" + "".join('"{}",x\n'.format(field.replace('"', '""')) for field in fields)
    await run_import(db, "made", csv, FormatRequest(nulls=[]))
    assert [row[0] for row in workshop.run("SELECT one FROM made")] == fields


async def test_rows_are_imported_by_column_names(db: Writing, workshop: Database) -> None:
    done = await run_import(db, "Review", "STARS,sku,customer\n4,SKU-0005,5\n")
    assert (done.table, done.created, done.rows) == ("review", False, 1)
    assert workshop.run("SELECT * FROM review WHERE customer = 5") == [(5, "SKU-0005", 4, None)]
    assert db.commits[0].tables == {"review"}


async def test_imported_numbers_of_a_sequence_are_noted(db: Writing, workshop: Database) -> None:
    columns = '(id serial PRIMARY KEY, "Nr" integer GENERATED ALWAYS AS IDENTITY, n integer)'
    workshop.run(f'CREATE TABLE "It\'s" {columns}', user="owner")
    done = await run_import(db, "It's", "id,Nr,n\n7,8,9\n")
    statements = [note.partition(": ")[2] for note in done.decisions if "sequence" in note]
    assert [workshop.run(statement) for statement in statements] == [[(7,)], [(8,)]]


async def test_text_columns_store_fields_unchanged(db: Writing, workshop: Database) -> None:
    done = await run_import(db, "typed", 'day,code\n31/12/2024,"1,234"\nNA,NA\n')
    assert workshop.run("SELECT day::text, code FROM typed") == [("2024-12-31", "1,234"), (None, "NA")]
    assert done.decisions[1:] == ["read as NULL, like empty fields: 'NA' (1)", "written in another form: day as date"]


async def test_ambiguous_dates_are_refused_for_a_date_column(db: Writing, workshop: Database) -> None:
    error = await get_refusal(db, workshop, "typed", "day,code\n1/2/2024,x\n")
    assert error.startswith(
        "bad_csv: dates whose day and month can't be told apart: specify the type date dmy or date mdy"
    )
    await run_import(db, "typed", "day,code\n1/2/2024,x\n", FormatRequest(types=["day=date dmy"]))
    assert workshop.run("SELECT day::text FROM typed") == [("2024-02-01",)]


async def test_more_than_1600_columns_are_refused(db: Writing, workshop: Database) -> None:
    error = await get_refusal(db, workshop, "made", ",".join("c" + str(n) for n in range(1_601)) + "\n")
    assert error.startswith("too_large: the file has 1,601 columns, and a table can have at most 1,600")


async def test_without_a_header_generated_columns_are_skipped(db: Writing, workshop: Database) -> None:
    workshop.run("CREATE TABLE made (a integer, b integer GENERATED ALWAYS AS (a + 1) STORED, c text)", user="owner")
    await run_import(db, "made", "1;x\n", FormatRequest(";", header=False))
    assert workshop.run("SELECT * FROM made") == [(1, 2, "x")]


async def test_a_new_table_has_exactly_the_given_name(db: Writing) -> None:
    done = await run_import(db, "Sales 2024; --", "a b\n1\n")
    assert done.table == '"Sales 2024; --"'


WRONG = [
    ("customer,sku,stars\n5,SKU-0005,4\n6,SKU-0006,many\n", "bad_value: row 2: "),
    ("customer,sku,stars\n5,SKU-0005,4\n1,SKU-0001,3\n", "constraint: row 2: "),
    ("customer,sku,stars\n5,SKU-0005,\n", "constraint: row 1: "),
    ("customer,sku,stars\n9999,SKU-0005,4\n", "constraint: "),
    ("customer,sku,stars\n5,SKU-0005,4\n6,SKU-0006,1,2\n", "bad_csv: row 2, line 3: "),
    ("customer,sku,number\n", "bad_csv: the first row names a column that the table does not have"),
    ("customer,sku,words,stars\n5,SKU-0005,a\0b,4\n", "bad_value: row 1: "),
]


async def test_an_error_names_the_row_and_rolls_back_the_import(db: Writing, workshop: Database) -> None:
    errors = [await get_refusal(db, workshop, "review", csv) for csv, _ in WRONG]
    assert [text for text, (_, reason) in zip(errors, WRONG, strict=True) if not text.startswith(reason)] == []
    # A lone surrogate is not a valid text, and PostgreSQL would cut a long table name.
    assert (await get_refusal(db, workshop, "made", "a\n\ud800\n")).startswith("bad_csv: ")
    assert "63 bytes" in await get_refusal(db, workshop, "é" * 32, "a\n1\n")


@pytest.mark.slow
async def test_an_error_stops_a_long_import_early(db: Writing) -> None:
    rows = "".join(f"{number},text\n" for number in range(300_000))
    with pytest.raises(SqlError) as caught:
        await db.import_csv("category", f"id,name\nx,y\n{rows}")
    assert caught.value.reason.startswith("row 1: ")


@pytest.mark.slow
async def test_an_import_times_out_and_keeps_the_connection(workshop: Database) -> None:
    workshop.run(_FRESH)
    # The time limit includes reading the file, before the import waits for the lock.
    async with writing(workshop.owner, Limits(1, 20)) as db:
        with workshop.server.connect(workshop.name) as other, other.transaction():
            other.execute("LOCK review")
            with pytest.raises(SqlError) as caught:
                await db.import_csv("review", "customer,sku,stars\n5,SKU-0005,4\n")
        assert caught.value.code == "timeout"
        assert await db.writer.ask("SELECT count(*) FROM review", deadline=Deadline(20)) == [(2,)]


@pytest.mark.slow
async def test_a_cancelled_import_leaves_no_rows(workshop: Database) -> None:
    workshop.run(_WAITS, user="owner")
    rows = f"1,{'text' * 1_000}\n" * 2_000  # more than the buffers of the connection hold
    buffered = "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'COPY waits%' AND wait_event = 'advisory'"
    async with writing(workshop.owner) as db:
        with workshop.server.connect(workshop.name) as other:
            other.execute("SELECT pg_advisory_lock(1)")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(db.import_csv, "waits", f"a,b\n{rows}")
                while not await anyio.to_thread.run_sync(workshop.run, buffered):
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
        assert not db.writer.is_broken
        assert not db.writer.in_transaction
        assert workshop.run("SELECT count(*) FROM waits") == [(0,)]
