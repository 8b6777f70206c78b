"""Query plans, and hypothetical indexes."""

import pytest

from servers.common.sql.errors import SqlError
from servers.common.sql.query.plan import Plan, format_plan
from servers.postgres.query.plans import explain
from tests.postgres_server import PostgresServer
from tests.servers.postgres.asking import looking
from tests.servers.postgres.databases import Database, copy_sample

BIG = """
CREATE TABLE big AS
  SELECT n, n % 1000 AS a, n % 7 AS b, (n % 50)::text::varchar(10) AS v, md5(n::text) AS "The Text"
  FROM generate_series(1, 20000) AS n;
ANALYZE big;
GRANT SELECT ON big TO reader;
"""


@pytest.fixture(scope="module")
def big(postgres: PostgresServer) -> Database:
    """The sample with a large table. The later tests of this file create the extension hypopg in it."""
    database = copy_sample(postgres, "big")
    database.run(BIG)
    return database


async def plan(database: Database, sql: str, *parameters: bytes | None, analyze: bool = False) -> Plan:
    async with looking(database.reader) as session:
        return await explain(sql, parameters, 20_000, session, analyze=analyze)


async def test_a_plan_has_indented_steps_with_costs(big: Database) -> None:
    result = await plan(big, "SELECT * FROM customer JOIN \"order\" ON customer = customer.id WHERE placed > 'now'")
    assert [step["level"] for step in result["steps"]] == [0, 1, 1, 2]
    assert result["steps"][0]["detail"].startswith("Hash Join; hash cond (customer.id = ")
    assert result["steps"][3]["detail"].startswith("Index Scan using order_placed_state_idx on order; index cond")
    assert not result["ran"]
    assert format_plan(result).startswith("4 steps; the statement was not run\n")


async def test_only_large_tables_are_listed_as_scanned_in_full(big: Database) -> None:
    assert (await plan(big, "SELECT count(*) FROM big AS one, big AS two, customer"))["scans"] == ["big"]
    assert (await plan(big, "SELECT * FROM customer"))["scans"] == []


async def test_analyze_adds_actual_rows_and_times(big: Database) -> None:
    result = await plan(big, "SELECT * FROM big WHERE a = 5", analyze=True)
    (step,) = result["steps"]
    assert "(actual rows 20, 19980 filtered out, " in step["detail"]
    assert result["ran"]
    assert result["notes"][0].startswith("planning ")


async def test_a_wrong_row_estimate_is_noted(big: Database) -> None:
    # The selectivity of an expression is unknown without CREATE STATISTICS.
    result = await plan(big, "SELECT * FROM big WHERE n % 2 = 0", analyze=True)
    assert "Seq Scan on big: 100 rows were expected, but 10000 were returned" in result["notes"]
    result = await plan(big, "SELECT * FROM big WHERE a = 5 LIMIT 1", analyze=True)
    assert not [note for note in result["notes"] if "expected" in note]


async def test_analyze_runs_in_a_read_only_transaction(big: Database) -> None:
    big.run("GRANT INSERT ON no_key TO reader")
    with pytest.raises(SqlError) as caught:
        await plan(big, "INSERT INTO no_key VALUES (7)", analyze=True)
    assert caught.value.code == "refused"
    result = await plan(big, "INSERT INTO no_key VALUES (7)")
    assert result["steps"][0]["detail"].startswith("Insert on no_key")


async def test_explain_accepts_a_missing_parameter(big: Database) -> None:
    given = await plan(big, "SELECT * FROM big WHERE a = $1", b"5")
    assert "filter (big.a = 5)" in given["steps"][0]["detail"]
    left_out = await plan(big, "SELECT * FROM big WHERE a = $1")
    assert "filter (big.a = $1)" in left_out["steps"][0]["detail"]


async def test_a_cursor_has_the_plan_that_explain_shows(big: Database) -> None:
    big.run("""
        CREATE TABLE shuffled AS SELECT md5(n::text) AS n, n AS m FROM generate_series(1, 20000) AS n;
        CREATE INDEX ON shuffled (n); ANALYZE shuffled; GRANT SELECT ON shuffled TO reader""")
    query = "SELECT * FROM shuffled ORDER BY n"
    async with looking(big.reader) as session:
        await session.ask("SET LOCAL random_page_cost = 20")
        explained = await session.ask(f"EXPLAIN {query}")
        assert await session.ask(f"EXPLAIN DECLARE rows CURSOR FOR {query}") == explained
        await session.ask("SET LOCAL cursor_tuple_fraction = 0.1")
        assert await session.ask(f"EXPLAIN DECLARE rows CURSOR FOR {query}") != explained


async def test_analyze_needs_the_values_of_parameters(big: Database) -> None:
    with pytest.raises(SqlError, match="the values of the parameters are missing"):
        await plan(big, "SELECT * FROM big WHERE a = $1", analyze=True)
    assert (await plan(big, "SELECT count(*) FROM big WHERE v = '$1'", analyze=True))["ran"]


async def test_explain_without_values_leaves_no_prepared_statement(big: Database) -> None:
    async with looking(big.reader) as session:
        for _ in range(2):
            await explain("SELECT * FROM big WHERE a = $1 AND v = $2", (), 20_000, session)
        assert await session.ask("SELECT 1 FROM pg_prepared_statements") == []


async def test_an_error_position_refers_to_the_callers_text(big: Database) -> None:
    with pytest.raises(SqlError) as caught:
        await plan(big, "SELECT nothing FROM customer")
    assert "line 1, column 8" in str(caught.value)


async def test_candidate_indexes_are_named_without_hypopg(big: Database) -> None:
    result = await plan(big, "SELECT * FROM big WHERE a = 5 AND b > 3 AND \"The Text\" = 'big.n = 1'")
    assert result["notes"] == [
        "an index might help, but was not tried, because hypopg is not installed: "
        'big (a); big ("The Text"); big (b); big (a, "The Text"); big (a, b)'
    ]


async def test_a_helpful_hypothetical_index_is_noted_with_its_cost(big: Database) -> None:
    big.run("CREATE SCHEMA tools; GRANT USAGE ON SCHEMA tools TO reader; CREATE EXTENSION hypopg SCHEMA tools")
    async with looking(big.reader) as session:
        result = await explain("SELECT * FROM big WHERE v = '7' AND a = 7", (), 20_000, session)
        assert await session.ask("SELECT 1 FROM tools.hypopg()") == []
    assert result["notes"][0].startswith("with an index on big (v, a) the cost would be 8.")
    assert result["notes"][0].endswith(" instead of 487")
    assert [note.partition(")")[0] for note in result["notes"]] == [
        "with an index on big (v, a", "with an index on big (a", "with an index on big (v",
    ]  # fmt: skip


async def test_useless_hypothetical_indexes_are_noted(big: Database) -> None:
    result = await plan(big, "SELECT * FROM big WHERE n > 1")
    assert result["notes"] == ["none of these indexes would make it much cheaper: big (n)"]


async def test_hypothetical_indexes_work_for_parameters_without_values(big: Database) -> None:
    result = await plan(big, "SELECT * FROM big WHERE a = $1")
    assert result["notes"][0].startswith("with an index on big (a) the cost would be ")


async def test_columns_within_expressions_are_not_index_candidates(big: Database) -> None:
    assert (await plan(big, "SELECT * FROM big WHERE lower(v) = 'x' AND a + 1 = 2"))["notes"] == []


@pytest.mark.parametrize("most", [700, 2_000])
async def test_a_long_plan_is_cut(most: int, big: Database) -> None:
    sql = " UNION ALL ".join(f"SELECT a FROM big WHERE b = {n}" for n in range(30))
    async with looking(big.reader) as session:
        result = await explain(sql, (), most, session)
    assert result["truncated"]
    assert len(format_plan(result)) < most
