"""Exporting all rows of a query to a file."""

from pathlib import Path

import pytest

from servers.common.sql.errors import SqlError
from servers.common.sql.jobs import Job
from servers.common.sql.query.formats import ExportRequest
from servers.common.sql.query.query import Query
from servers.postgres.engine.deadline import Deadline
from servers.postgres.query.columns import ColumnTypes
from servers.postgres.query.exporting import write_export
from tests.postgres_server import PostgresServer
from tests.servers.postgres.engines import make_pool, soon


async def export(
    postgres: PostgresServer, query: Query, request: ExportRequest, deadline: Deadline | None = None
) -> tuple[int, int]:
    pool = make_pool(postgres.url())
    try:
        return await write_export(pool, query, request, ColumnTypes(), deadline or soon())
    finally:
        await pool.close()


async def test_an_export_writes_values_as_postgresql_text(postgres: PostgresServer, tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    sql = "SELECT 1 AS n, '{1,NULL}'::int[] AS \"a b\", NULL AS x, '' AS y, $1::bytea AS z;"
    done = await export(postgres, Query(sql, ["\\x00ff"]), ExportRequest(path, "csv", 1_000))
    assert path.read_bytes() == b'n,a b,x,y,z\r\n1,"{1,NULL}",,"",\\x00ff\r\n'
    assert done == (1, path.stat().st_size)


async def test_an_export_without_rows_has_a_header(postgres: PostgresServer, tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    assert (await export(postgres, Query("SELECT 1 AS n LIMIT 0", ()), ExportRequest(path, "csv", 1_000)))[0] == 0
    assert path.read_bytes() == b"n\r\n"


@pytest.mark.slow
async def test_an_export_of_many_rows_uses_little_memory(postgres: PostgresServer, tmp_path: Path) -> None:
    job = Job(100)
    query = Query("SELECT n, repeat('x', 100) FROM generate_series(1, 50000) AS n", ())
    request = ExportRequest(tmp_path / "export.jsonl", "jsonl", 100_000_000)
    assert (await export(postgres, query, request, Deadline(1, job)))[0] == 50_000
    assert job.progress is not None
    assert job.progress.message == "50,000 rows"


async def test_an_export_beyond_the_size_limit_stops_the_query(postgres: PostgresServer, tmp_path: Path) -> None:
    query = Query("SELECT 1 FROM generate_series(1, 9999) AS a, generate_series(1, 9999) AS b", ())
    with pytest.raises(SqlError) as caught:
        await export(postgres, query, ExportRequest(tmp_path / "export.csv", "csv", 100_000))
    assert caught.value.code == "too_large"
    assert not [*tmp_path.iterdir()]
