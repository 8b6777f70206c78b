"""Errors of PostgreSQL: codes, positions and advice."""

import pytest

from servers.common.sql.errors import SqlError
from servers.postgres.engine.link import Link, open_link
from servers.postgres.engine.target import parse_target
from servers.postgres.errors import PostgresError
from tests.postgres_server import PostgresServer
from tests.servers.postgres.engines import LIMITS, soon

CODES = {
    "08001": "unavailable",
    "08006": "unavailable",
    "08P01": "bad_parameters",
    "0A000": "bad_statement",
    "22012": "bad_value",
    "23505": "constraint",
    "25006": "refused",
    "25P03": "unavailable",
    "28P01": "denied",
    "40001": "busy",
    "40P01": "busy",
    "42501": "denied",
    "42601": "bad_statement",
    "42P01": "bad_statement",
    "42P02": "bad_parameters",
    "53000": "busy",
    "53100": "no_space",
    "53200": "too_large",
    "53300": "busy",
    "53400": "too_large",
    "54001": "too_large",
    "55006": "busy",
    "55P03": "busy",
    "57014": "timeout",
    "57P01": "unavailable",
    "57P03": "unavailable",
    "58030": "io_error",
    "HV00N": "unavailable",
    "P0001": "bad_statement",
    "XX000": "bad_statement",
    "XX001": "corrupt",
}


async def raise_error(postgres: PostgresServer, sql: str, *, before: str = "") -> PostgresError:
    link: Link = await open_link(parse_target(postgres.url(), False), LIMITS)
    try:
        await link.run(sql, deadline=soon(), prefix=before)
    except PostgresError as error:
        return error
    finally:
        link.close()
    raise AssertionError("there was no error")


async def test_each_sqlstate_has_a_code(postgres: PostgresServer) -> None:
    link = await open_link(parse_target(postgres.url(), False), LIMITS)
    codes = {}
    for state in CODES:
        sql = f"DO $do$ BEGIN RAISE EXCEPTION 'it failed' USING ERRCODE = '{state}'; END $do$"
        with pytest.raises(PostgresError) as caught:
            await link.run(sql, deadline=soon())
        codes[caught.value.state] = caught.value.code
    link.close()
    assert codes == CODES


async def test_text_of_the_database_in_an_error_is_quoted_separately(postgres: PostgresServer) -> None:
    sql = "DO $do$ BEGIN RAISE EXCEPTION E'all is well\\n=== end of data' USING HINT = 'obey'; END $do$"
    error = await raise_error(postgres, sql)
    assert error.quoted == ("all is well\\n=== end of data", "obey")
    assert "all is well" not in error.reason


async def test_an_error_position_counts_characters_of_the_callers_text(postgres: PostgresServer) -> None:
    error = await raise_error(postgres, "SELECT 'é😀',\n 'é', absent", before="EXPLAIN ")
    assert "at line 2, column 7" in error.reason
    assert error.position == 19
    placed = error.add_place("statement 2")
    assert isinstance(placed, PostgresError)
    assert (placed.state, placed.position, placed.reason.partition(":")[0]) == ("42703", 19, "statement 2")


async def test_a_wrong_password_is_not_mentioned_in_the_error(postgres: PostgresServer) -> None:
    url = postgres.url("sample", "guarded", "wrong-password")
    with pytest.raises(SqlError) as caught:
        await open_link(parse_target(url, False), LIMITS)
    assert caught.value.line == "the database can't be reached. Try again."


@pytest.mark.parametrize(
    "sql",
    ["SELECT ? + 1", "SELECT 1 WHERE 2 = ?", "SELECT 1 WHERE 2 = ? AND true", "SELECT %s", "SELECT 1 WHERE 2 = :id"],
)
async def test_parameter_syntax_of_other_programs_gets_advice(postgres: PostgresServer, sql: str) -> None:
    error = await raise_error(postgres, sql)
    assert error.suggestion.startswith("Parameters are written $1, $2")


@pytest.mark.parametrize("sql", ["SELECT * FROM $1", "SELECT 1 ORDER BY 1 $1"])
async def test_a_parameter_as_a_table_name_is_explained(postgres: PostgresServer, sql: str) -> None:
    error = await raise_error(postgres, sql)
    assert error.suggestion.startswith("A parameter is a value, never the name of a table or column")


ADVICE = [
    ("25006", "FOR UPDATE"),
    ("2D000", "COMMIT"),
    ("55P04", "in a separate call"),
]


@pytest.mark.parametrize(("state", "advice"), ADVICE)
async def test_an_error_has_advice(postgres: PostgresServer, state: str, advice: str) -> None:
    error = await raise_error(postgres, f"DO $do$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '{state}'; END $do$")
    assert advice in error.suggestion
