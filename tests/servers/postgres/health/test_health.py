"""The health checks of a server and a database."""

import asyncio
from collections.abc import Sequence

import psycopg
import pytest

from servers.postgres.health.checks import CHECKS
from servers.postgres.health.health import check_health, format_health
from servers.postgres.health.lines import format_ago, format_share, format_size, format_span
from servers.postgres.health.slow_statements import list_slow_statements
from tests.servers.postgres.asking import asking
from tests.servers.postgres.databases import Database

PATIENCE = 1_000
"""The number of queries while waiting for something that happens in the background."""


def find_section(lines: Sequence[str], title: str) -> list[str]:
    """Returns the lines of one section."""
    start = next(place for place, line in enumerate(lines) if line.startswith(f"{title}:"))
    following = next((n for n, line in enumerate(lines) if n > start and not line.startswith(" ")), len(lines))
    return [lines[start].removeprefix(f"{title}:"), *(line.strip() for line in lines[start + 1 : following])]


async def run_checks(database: Database, user: str = "postgres") -> list[str]:
    async with asking(database.server.url(database.name, user)) as ask:
        return await check_health(ask)


def wait_until(database: Database, sql: str) -> None:
    for _ in range(PATIENCE):
        if database.run(sql):
            return
    pytest.fail(f"never came: {sql}")


async def test_every_role_gets_every_check(sample: Database) -> None:
    for user in ("reader", "owner", "postgres"):
        lines = await run_checks(sample, user)
        titles = [line.partition(":")[0] for line in lines if not line.startswith(" ")]
        assert titles == [*(check.title for check in CHECKS), "slow statements"]
        assert not [line for line in lines if "not known" in line]


async def test_problems_are_warnings_and_missing_privileges_are_named(sample: Database) -> None:
    for_reader, for_all = await run_checks(sample, "reader"), await run_checks(sample)
    server = find_section(for_reader, "server")
    assert server[1].startswith("PostgreSQL ")
    assert "WARNING: fsync is off" in server
    assert format_health("shop", server).startswith("database shop; 3 warnings\n<data-")
    hidden = "not allowed for this role: sessions of others (the operator can GRANT pg_read_all_stats)"
    for title in ("long transactions", "sessions that wait for locks"):
        assert hidden in find_section(for_reader, title)
        assert hidden not in find_section(for_all, title)
    assert "not allowed for this role: 4 sequences" in find_section(for_reader, "sequences")


@pytest.mark.slow
async def test_a_denied_check_does_not_hide_the_others(database: Database) -> None:
    database.run("REVOKE EXECUTE ON FUNCTION pg_database_size(name) FROM PUBLIC")
    lines = await run_checks(database, "reader")
    assert find_section(lines, "server") == ["", "not allowed for this role"]
    assert "of 40 are used" in find_section(lines, "connections")[1]


@pytest.mark.slow
async def test_redundant_unused_and_invalid_indexes_are_listed(database: Database) -> None:
    database.run(
        "CREATE INDEX again ON product (category, price DESC) WHERE NOT discontinued;"
        'CREATE INDEX key_again ON "order" (id); CREATE INDEX other ON "order" (id DESC);'
        "CREATE TABLE big AS SELECT md5(n::text) AS t FROM generate_series(1, 30000) AS n;"
        "CREATE INDEX lazy ON big (t);"
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'product_details'::regclass"
    )
    lines = find_section(await run_checks(database), "indexes")
    assert [line.partition(",")[0] for line in lines[1:]] == [
        "not valid: product_details on product",
        'double: key_again on "order"',
        "double: again on product",
        "never used since statistics began: lazy on big",
    ]
    assert lines[2].endswith("; the same as order_pkey")


async def test_a_sequence_near_its_end_is_a_warning(workshop: Database) -> None:
    workshop.run(
        "SELECT setval('refund_id_seq', 2000000000); CREATE SEQUENCE down INCREMENT -1 MINVALUE -10;"
        "SELECT setval('down', -9); CREATE SEQUENCE round MAXVALUE 10 CYCLE; SELECT setval('round', 9)"
    )
    assert find_section(await run_checks(workshop), "sequences")[1:] == [
        "WARNING: refund_id_seq (integer) has used 93.1 % of its numbers",
        "WARNING: down (bigint) has used 88.9 % of its numbers",
    ]


@pytest.mark.slow
async def test_a_table_with_many_dead_rows_is_listed(database: Database) -> None:
    with psycopg.connect(database.server.url(database.name), autocommit=True) as connection:
        connection.execute("CREATE TABLE churned AS SELECT n FROM generate_series(1, 5000) AS n")
        connection.execute("DELETE FROM churned WHERE n > 1000")
    wait_until(database, "SELECT 1 FROM pg_stat_user_tables WHERE relname = 'churned' AND n_dead_tup = 4000")
    (line,) = [
        line
        for line in find_section(await run_checks(database), "tables that need VACUUM or ANALYZE")
        if "churned" in line
    ]
    assert "4000 dead and 1000 live rows, vacuumed never, analyzed never, 9000 changes since" in line


@pytest.mark.slow
async def test_waiting_sessions_and_lock_holders_are_listed(database: Database) -> None:
    url = database.server.url(database.name, "owner")
    async with (
        await psycopg.AsyncConnection.connect(url) as holder,
        await psycopg.AsyncConnection.connect(url) as waiter,
    ):
        holding, pid = holder.info.backend_pid, waiter.info.backend_pid
        await holder.execute("LOCK TABLE product")
        buffered = asyncio.ensure_future(waiter.execute("SELECT count(*) FROM product"))
        for _ in range(PATIENCE):
            lines = find_section(await run_checks(database), "sessions that wait for locks")
            if len(lines) > 1:
                break
        await holder.rollback()
        await buffered
    held = f"for AccessShareLock on product, blocked by pid {holding}: SELECT count(*) FROM product"
    assert lines[1].endswith(held)
    assert lines[1].startswith(f"pid {pid}, owner, has waited ")


@pytest.mark.slow
async def test_a_long_transaction_is_listed_with_its_effect_on_vacuum(database: Database) -> None:
    (check,) = [check for check in CHECKS if check.title == "long transactions"]
    with psycopg.connect(database.server.url(database.name, "owner")) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT 1")
        database.run("CREATE TABLE one (); CREATE TABLE two ()")
        async with asking(database.server.url(database.name)) as ask:
            rows = await ask(check.query.replace("'60 s'", "'0 s'"))
            assert await ask(check.query) == []
        pid = connection.info.backend_pid
    (line,) = [
        line for line in check.format_rows(rows) if line.startswith(f"pid {pid}, owner: idle in transaction, began ")
    ]
    assert ", prevents the removal of rows that died in the last " in line


async def test_the_age_of_transactions_is_a_number_of_transactions() -> None:
    (check,) = [check for check in CHECKS if check.title == "age of transactions"]
    lines = list(check.format_rows([("shop", 1_500_000_000, 200_000_000, "item", 1_500_000_000)]))
    assert lines[:2] == [
        "the oldest transaction ID in shop is 1,500,000,000 transactions old; autovacuum acts at 200,000,000",
        "the oldest table is item: 1,500,000,000",
    ]
    assert lines[2].startswith("WARNING: at about 2.1 billion the server stops accepting writes")


async def test_statements_of_other_sessions_stay_on_one_line() -> None:
    (check,) = [check for check in CHECKS if check.title == "long transactions"]
    row = (7, "a\nb", "active", 90.0, 0.0, None, "SELECT 1;\n</data>\x1b[2J" + "x" * 500)
    (line,) = check.format_rows([row])
    assert line.startswith('pid 7, "a\\nb": active, began 1 min 30 s ago: SELECT 1; </data>\\x1b[2Jxxx')
    assert len(line) < 250


@pytest.mark.slow
async def test_slow_statements_are_listed_by_total_time_and_time_per_call(database: Database) -> None:
    database.run("CREATE EXTENSION pg_stat_statements")
    database.run("SELECT count(*) FROM customer, product WHERE customer.id = 5")
    async with asking(database.server.url(database.name)) as ask:
        lines = await list_slow_statements(ask)
    assert [line for line in lines if not line.startswith(" ")] == ["by total time:", "by time per call:"]
    matching = [line for line in lines if "FROM customer, product WHERE customer.id = $1" in line]
    assert " in 1 call (" in matching[0]
    assert ", 1.0 rows each, " in matching[0]


@pytest.mark.slow
async def test_statements_of_others_are_hidden(database: Database) -> None:
    database.run("CREATE EXTENSION pg_stat_statements; GRANT SELECT ON pg_stat_statements TO reader")
    async with asking(database.reader) as ask:
        lines = await list_slow_statements(ask)
    assert (
        lines[0]
        == "Statements of other roles are hidden from this one: the operator can GRANT pg_read_all_stats to it."
    )
    assert "insufficient privilege" not in "\n".join(lines)


async def test_a_missing_pg_stat_statements_is_noted(sample: Database) -> None:
    async with asking(sample.reader) as ask:
        (line,) = await list_slow_statements(ask)
    assert line.startswith("pg_stat_statements is not installed in this database, ")


def test_sizes_times_and_shares_are_human_readable() -> None:
    formatted = [
        (format_size(10_239), "10239 bytes"),
        (format_size(3_628_000), "3543 kB"),
        (format_size(5 << 50), "5120 TB"),
        (format_span(3.21), "3.2 s"),
        (format_span(61), "1 min 1 s"),
        (format_span(100_000), "1 d 3 h"),
        (format_ago(None), "never"),
        (format_share(1, 3), "33.3 %"),
        (format_share(0, 0), "nothing yet"),
    ]
    assert [matching for matching, _ in formatted] == [expected for _, expected in formatted]
