"""One query and its answer."""

import pytest

from servers.common.sql.errors import SqlError
from servers.common.sql.query.pages import AnswerLimits
from servers.postgres.engine.deadline import Limits
from tests.postgres_server import PostgresServer
from tests.servers.postgres.databases import Database
from tests.servers.postgres.engines import reading


async def test_an_answer_has_names_types_and_declared_types(workshop: Database) -> None:
    workshop.run("CREATE DOMAIN place AS text; CREATE TABLE typed (a varchar(20), b place, c numeric(10, 2)[])")
    workshop.run("INSERT INTO typed VALUES ('x', 'a@b', '{1.50}'); GRANT SELECT ON typed TO reader")
    async with reading(workshop.reader) as reader:
        result = await reader.read("SELECT a, b, c, upper(a) AS d FROM typed")
    assert result.names == ("a", "b", "c", "d")
    assert result.declared == ("character varying(20)", "place", "numeric(10,2)[]", None)
    assert result.page.types == ["character varying", "text", "numeric[]", "text"]
    assert result.page.rows == [("x", "a@b", [1.5], "X")]


async def test_every_reading_statement_returns_rows(postgres: PostgresServer) -> None:
    async with reading(postgres.url()) as reader:
        for sql in ("SHOW DateStyle", "EXPLAIN (COSTS off) SELECT 1", "VALUES (1)", "TABLE pg_tablespace"):
            result = await reader.read(sql)
            assert result.page.rows
            assert not result.has_more
        assert (await reader.read("EXPLAIN SELECT 1 WHERE $1::int = 1", 2)).page.rows
        values = await reader.read("SELECT $1::int + 1, $2, $3::int[]", 1, "'; --", [1, None])
        large = await reader.read("SELECT repeat('x', 50000), repeat('y', 50000)")
        places = ", ".join(f"${number}::int" for number in range(1, 30_001))
        many = await reader.read(f"SELECT 29999 IN ({places})", *range(30_000))
    assert (values.page.rows, many.page.rows) == ([(2, "'; --", [1, None])], [(True,)])
    # A row larger than an answer is cut.
    assert [cell["bytes"] for cell in large.page.rows[0]] == [50_000, 50_000]


async def test_an_explain_result_is_paged(postgres: PostgresServer) -> None:
    sql = "EXPLAIN (FORMAT text) SELECT FROM pg_class a JOIN pg_class b USING (oid)"
    async with reading(postgres.url()) as reader:
        first = await reader.read(sql, limits=AnswerLimits(2, 10_000, 1_000))
        second = await reader.read(sql, cursor=first.cursor, limits=AnswerLimits(2, 10_000, 1_000))
    assert second.page.rows
    assert second.page.rows[0] not in first.page.rows


CODES = [
    ("SELECT 1; DROP TABLE t", "bad_statement"),
    ("SELECT $1", "bad_parameters"),
    ("SELECT 1/0", "bad_value"),
    ("SELECT * INTO t FROM pg_class", "refused"),
    ("SELECT * FROM pg_class FOR UPDATE", "refused"),
    ("WITH a AS (DELETE FROM t) SELECT 1", "refused"),
    ("SELECT nothing", "bad_statement"),
    ("SELECT '1'::int4 + 'x'::int4", "bad_value"),
    ("EXPLAIN ANALYZE CREATE TABLE t AS SELECT 1", "refused"),
    ("SELECT 'a\0'", "bad_statement"),
]


async def test_an_error_has_a_code_and_a_position(postgres: PostgresServer) -> None:
    async with reading(postgres.url()) as reader:
        assert [(sql, await reader.code_of(sql)) for sql, _ in CODES] == CODES
        with pytest.raises(SqlError) as caught:
            await reader.read("SELECT 1,\n       absent")
    assert "line 2, column 8" in caught.value.reason


async def test_a_table_the_role_may_not_read_is_denied(workshop: Database) -> None:
    async with reading(workshop.reader) as reader:
        workshop.run("CREATE TABLE hidden (n int)")
        assert await reader.code_of("TABLE hidden") == "denied"


async def test_a_lock_of_another_session_is_a_busy_error(workshop: Database) -> None:
    workshop.run("CREATE TABLE locked (n int); GRANT SELECT ON locked TO reader")
    with workshop.server.connect(workshop.name) as other:
        other.execute("BEGIN")
        other.execute("LOCK TABLE locked")
        async with reading(workshop.reader, limits=Limits(busy_timeout=0.05)) as reader:
            assert await reader.code_of("TABLE locked") == "busy"


async def test_a_list_becomes_json_or_an_array_by_the_parameter_type(postgres: PostgresServer) -> None:
    async with reading(postgres.url()) as reader:
        result = await reader.read(
            "SELECT $1::jsonb, $2::int[], $3::json->0, $4::text", [1, {"a": None}], [1], [2], [3]
        )
    assert result.page.rows == [('[1, {"a": null}]', [1], "2", '{"3"}')]


async def test_a_whole_float_is_accepted_for_an_integer(postgres: PostgresServer) -> None:
    async with reading(postgres.url()) as reader:
        result = await reader.read("SELECT $1::int, $2::float8, $3::numeric", 1.0, -0.0, 2.5)
    assert result.page.rows == [(1, -0.0, 2.5)]


async def test_a_byte_order_mark_before_a_statement_is_ignored(postgres: PostgresServer) -> None:
    async with reading(postgres.url()) as reader:
        assert (await reader.read("\ufeffSELECT 1")).page.rows == [(1,)]
