"""Compatibility with the archived npm server for PostgreSQL, without its vulnerability."""

import json
import sys

import pytest

from tests.servers.postgres.databases import Database
from tests.servers.postgres.serving import Peer, inside

TOOL = "--query-tool"
ATTACKS = [
    "COMMIT; DROP SCHEMA public CASCADE;",
    "COMMIT; DROP TABLE refund; --",
    "ROLLBACK; DELETE FROM refund",
    "END; UPDATE refund SET id = 99",
    "SELECT 1; COMMIT; TRUNCATE refund",
    "SELECT 1;COMMIT;CREATE TABLE owned (a int);SELECT 2",
    "/* */ COMMIT",
    "COMMIT AND CHAIN",
    "ABORT; DROP TABLE refund",
    "PREPARE TRANSACTION 'x'",
    "SAVEPOINT s; ROLLBACK TO s; DROP TABLE refund",
    "SET TRANSACTION READ WRITE; DELETE FROM refund",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
    "SET default_transaction_read_only = off",
    "SELECT set_config('transaction_read_only', 'off', false)",
    "RESET ALL; DELETE FROM refund",
    "BEGIN READ WRITE; DELETE FROM refund; COMMIT",
    "DO $$ BEGIN DELETE FROM refund; END $$",
    "DO $$ BEGIN COMMIT; DROP TABLE refund; END $$",
    "CALL refund()",
    "COPY (SELECT 1) TO PROGRAM 'true'",
    "COPY refund FROM '/etc/passwd'",
    "DELETE FROM refund",
    "WITH gone AS (DELETE FROM refund RETURNING id) SELECT * FROM gone",
    "EXPLAIN ANALYZE DELETE FROM refund",
    "SELECT * INTO owned FROM refund",
    "SELECT 'a' AS x FROM refund; DROP TABLE refund --'",
    "SELECT E'\\'; COMMIT; DROP TABLE refund; --'",
    "SELECT $a$x$a$; COMMIT; DROP TABLE refund",
    "SELECT lo_import('/etc/passwd')",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_terminate_backend(pg_backend_pid())",
    "SELECT nextval('customer_id_seq')",
    "SELECT query_to_xml('DELETE FROM refund', true, true, '')",
    "PREPARE p AS DELETE FROM refund",
    "LISTEN x",
    "NOTIFY x",
    "LOCK refund",
    "VACUUM refund",
    "GRANT ALL ON refund TO PUBLIC",
]
HARMLESS = {"SELECT E'\\'; COMMIT; DROP TABLE refund; --'"}
"""Attacks that are only a string literal."""
URIS = [
    "postgres://shop/refund' OR '1'='1/schema",
    "postgres://shop/refund%27%3B%20COMMIT%3B%20DROP%20TABLE%20refund%3B--/schema",
    "postgres://shop/../schema",
    "postgres://shop//schema",
    "postgres://shop/%00/schema",
    "postgres://shop/nothing/schema",
]


async def list_tool_names(peer: Peer) -> list[str]:
    """Returns the names of the offered tools."""
    return [one["name"] for one in (await peer.request("tools/list"))["result"]["tools"]]


async def test_a_client_of_the_archived_server_lists_reads_and_queries(database: Database) -> None:
    async with inside(TOOL, database.reader) as peer:
        listed = (await peer.request("resources/list"))["result"]["resources"]
        uri = f"postgres://{database.name}/refund/schema"
        entry = next(one for one in listed if one["uri"] == uri)
        assert (entry["name"], entry["mimeType"]) == ('"refund" database schema', "application/json")
        for known in (uri, "postgres://someone@db.example.org:5432/refund/schema"):
            (contents,) = (await peer.request("resources/read", uri=known))["result"]["contents"]
            assert {"column_name": "id", "data_type": "integer"} in json.loads(contents["text"])
        result = await peer.call("query", sql="SELECT 1 AS one, 'a' AS two")
    assert [one["text"] for one in result["content"]] == ['[\n  {\n    "one": 1,\n    "two": "a"\n  }\n]']
    assert "structuredContent" not in result


async def test_omitted_rows_and_merged_columns_are_noted(sample: Database) -> None:
    async with inside(TOOL, "--max-rows", "2", sample.reader) as peer:
        result = await peer.call("query", sql="SELECT n, n FROM generate_series(1, 3) AS n")
    rows, *notes = [one["text"] for one in result["content"]]
    assert json.loads(rows) == [{"n": 1}, {"n": 2}]
    assert notes == [
        "truncated: 2 rows shown; continue with LIMIT and OFFSET",
        "columns with the same name are merged here; rename them with AS",
    ]


async def test_attacks_on_the_archived_server_change_nothing(database: Database) -> None:
    before = database.run("SELECT (SELECT count(*) FROM refund), (SELECT count(*) FROM pg_class)")
    async with inside(TOOL, "--allow-write", database.owner) as peer:
        done = [sql for sql in ATTACKS if not (await peer.call("query", sql=sql)).get("isError")]
        read = [uri for uri in URIS if "result" in await peer.request("resources/read", uri=uri)]
    assert ({*done}, read) == (HARMLESS, [])
    assert database.run("SELECT (SELECT count(*) FROM refund), (SELECT count(*) FROM pg_class)") == before


async def test_the_archived_tool_is_offered_only_under_that_program_name(
    sample: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with inside(sample.reader) as peer:
        assert "query" not in await list_tool_names(peer)
    monkeypatch.setattr(sys, "argv", ["/usr/bin/mcp-server-postgres", sample.reader])
    async with inside(sample.reader) as peer:
        assert "query" in await list_tool_names(peer)
