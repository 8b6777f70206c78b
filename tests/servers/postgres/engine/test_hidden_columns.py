"""Hidden columns: privileges protect them, and the server checks these privileges at the start."""

import json

import pytest

from servers.postgres.server import app
from servers.postgres.settings import Narrowing
from tests.pgbouncer import pooling
from tests.servers.peers import settings_of
from tests.servers.postgres.databases import OWNER, READER, Database
from tests.servers.postgres.serving import inside

SECRET = "SECRET-4711"
MADE = f"""
CREATE TABLE account (id integer PRIMARY KEY, name text, secret text UNIQUE, next integer REFERENCES account);
CREATE INDEX account_upper ON account (upper(secret));
INSERT INTO account VALUES (1, 'Ada', '{SECRET}', NULL), (2, 'Bob', '{SECRET}-2', 1);
CREATE TABLE part (id integer, secret text) PARTITION BY RANGE (id);
CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (1) TO (9);
CREATE STATISTICS account_stats ON name, secret FROM account;
GRANT SELECT (id, name, next) ON account TO {READER};
GRANT SELECT (id) ON part TO {READER};
ANALYZE account;
"""
HIDE = ("--hide", "account.secret", "--hide", "public.part.secret")
READS = [
    "SELECT secret FROM account",
    "SELECT * FROM account",
    "SELECT account FROM account",
    "SELECT a.* FROM account AS a",
    "SELECT row_to_json(a) FROM account AS a",
    "SELECT to_jsonb(account) ->> 'secret' FROM account",
    "SELECT (a).secret FROM account AS a",
    "SELECT secret(account) FROM account",
    "SELECT id FROM account WHERE secret LIKE 'S%'",
    "SELECT id FROM account ORDER BY secret",
    "SELECT count(DISTINCT secret) FROM account",
    "SELECT max(secret) FROM account",
    "SELECT id FROM account GROUP BY id, secret",
    "SELECT upper(secret) FROM account",
    "SELECT a.id FROM account AS a JOIN account AS b USING (secret)",
    "SELECT id FROM account AS a NATURAL JOIN account AS b",
    "TABLE account",
    "WITH a AS (SELECT * FROM account) SELECT id FROM a",
    "SELECT row_number() OVER (ORDER BY secret) FROM account",
    "SELECT CASE WHEN secret > 'S' THEN 1 ELSE 1 / 0 END FROM account",
    "EXPLAIN SELECT id FROM account WHERE secret = 'x'",
    "EXPLAIN ANALYZE SELECT secret FROM account",
    "SELECT query_to_xml('SELECT secret FROM account', true, true, '')",
    "SELECT table_to_xml('account', true, true, '')",
    "SELECT * FROM pg_statistic",
    "SELECT stxddependencies FROM pg_statistic_ext_data",
    "SELECT secret FROM part",
    "SELECT secret FROM part_1",
    "SELECT ctid, secret FROM ONLY account",
    "SELECT pg_read_file('base/1/1259')",
    "SELECT account.* IS NULL FROM account",
    "SELECT hash_record(account) FROM account",
    "SELECT id FROM account WHERE account = account",
    "SELECT id FROM account WHERE (account.*)::text LIKE '%S%'",
    "SELECT md5(account::text) FROM account",
    "SELECT jsonb_object_agg(id, secret) FROM account",
    "SELECT array_agg(a) FROM account AS a",
    "SELECT x FROM account AS a, LATERAL (SELECT a.secret AS x) AS b",
    "SELECT (SELECT secret FROM account LIMIT 1)",
    "SELECT id FROM account WHERE EXISTS (SELECT FROM account AS b WHERE b.secret > 'S')",
    "SELECT id FROM account UNION SELECT length(secret) FROM account",
    "SELECT json_populate_record(a, '{}') FROM account AS a",
    "SELECT * FROM account AS a(one, two, three, four)",
    "SELECT three FROM account AS a(one, two, three, four)",
    "SELECT id FROM account TABLESAMPLE SYSTEM (100) WHERE secret IS NULL",
    "SELECT grouping(secret) FROM account GROUP BY ROLLUP (secret)",
    "SELECT first_value(secret) OVER () FROM account",
    "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY secret) FROM account",
    "SELECT count(*) FILTER (WHERE secret LIKE 'S%') FROM account",
    "WITH RECURSIVE r AS (SELECT secret FROM account UNION ALL SELECT secret FROM r) SELECT * FROM r",
    "SELECT database_to_xml(true, true, '')",
    "SELECT schema_to_xml('public', true, true, '')",
    "SELECT lo_import('/etc/passwd')",
    "SELECT pg_ls_dir('base')",
    "SELECT * FROM pg_show_all_file_settings()",
    "SELECT * FROM pg_statistic_ext_data",
    "COPY account TO STDOUT",
    "COPY (SELECT secret FROM account) TO STDOUT",
    "SET ROLE owner",
    "SET SESSION AUTHORIZATION owner",
    "GRANT SELECT ON account TO PUBLIC",
    "CREATE VIEW seen AS SELECT secret FROM account",
    "DECLARE c CURSOR FOR SELECT secret FROM account",
    "PREPARE p AS SELECT secret FROM account",
    "SELECT part FROM part",
    "SELECT tableoid, part_1 FROM part_1",
]
"""Queries that fail."""
EMPTY = [
    "SELECT most_common_vals FROM pg_stats WHERE attname = 'secret' AND tablename = 'account'",
    "SELECT histogram_bounds FROM pg_stats WHERE attname = 'secret' AND tablename = 'account'",
    "SELECT * FROM pg_stats_ext WHERE tablename = 'account'",
    "SELECT 1 FROM information_schema.columns WHERE column_name = 'secret' AND table_name = 'account'",
]
"""Queries that return no rows."""


async def test_no_statement_reads_a_column_denied_to_the_role(database: Database) -> None:
    database.run(MADE, user=OWNER)
    await require_hidden(database, database.reader)


async def test_no_statement_through_a_pooler_reads_a_denied_column(database: Database) -> None:
    database.run(MADE, user=OWNER)
    with pooling(database.server, "transaction", 2) as pooler:
        await require_hidden(database, pooler.url(database.name, READER))


async def require_hidden(database: Database, url: str) -> None:
    async with inside(*HIDE, "--query-tool", url) as peer:
        failed = [await peer.call("read_query", query=sql) for sql in READS]
        given = [(await peer.data("read_query", query=sql))["rows"] for sql in EMPTY]
        answers = [
            await peer.call("describe_table", table_name="account", sample=5, statistics=True),
            await peer.call("explain_query", query="SELECT id FROM account WHERE secret = 'x'"),
            await peer.request("resources/read", uri=f"postgres:///{database.name}/account"),
            await peer.request("resources/read", uri=f"postgres:///{database.name}/account/1"),
            await peer.call("describe_database"),
            await peer.call("list_tables", search=SECRET),
            await peer.call("check_health"),
            await peer.call("export", query="SELECT secret FROM account"),
            await peer.call("explain_query", query="SELECT id FROM account WHERE secret > 'x'", analyze=True),
            await peer.call("query", sql="SELECT * FROM account"),
            await peer.request("resources/read", uri=f"postgres:///{database.name}/schema"),
            await peer.request("resources/read", uri="postgres://any/account/schema"),
            await peer.request("resources/read", uri=f"postgres:///{database.name}/part/1"),
        ]
    assert [sql for sql, result in zip(READS, failed, strict=True) if not result.get("isError")] == []
    assert given == [[]] * len(EMPTY)
    assert SECRET not in json.dumps([failed, answers])
    # The other columns can be read.
    assert "Ada" in json.dumps(answers[0])
    assert ["Ada" in json.dumps(one.get("result")) for one in answers[2:4]] == [True, True]


async def test_a_denied_select_lists_the_readable_columns(database: Database) -> None:
    database.run(MADE, user=OWNER)
    async with inside(database.reader) as peer:
        refused = await peer.error("read_query", query="SELECT * FROM Account")
        described = await peer.text("describe_table", table_name="account")
        of_none = await peer.error("read_query", query="SELECT * FROM part_1")
    assert "only these columns" in refused
    assert "\naccount: id, name, next\n" in refused
    assert "not readable: secret" in " ".join(described.split())
    assert "only these columns" not in of_none


def test_hide_can_be_extended_for_a_principal() -> None:
    settings = settings_of(app, "--hide", "vault", "all=postgresql://a/shop", "shop=postgresql://b/shop")
    own = settings.narrow(Narrowing(databases=["shop"], hide=["account.secret"]))
    assert (own.hide, [source.name for source in own.sources]) == (["vault", "account.secret"], ["shop"])
    assert settings.hide == ["vault"]


@pytest.mark.parametrize(
    ("hide", "user", "reason"),
    [
        (
            "account.name",
            READER,
            r"account\.name, and the role reader may .* GRANT SELECT \(id, secret, next\) ON account",
        ),
        ("account", READER, "names account, and the role reader may read it.*REVOKE SELECT ON account FROM reader$"),
        ("part.id", READER, r"names part\.id"),
        ("account.secret", OWNER, r"names account\.secret, and the role owner"),
        ("account.secrets", READER, r"--hide: no database has account\.secrets"),
        ("nonesuch", READER, "--hide: no database has nonesuch"),
    ],
)
async def test_a_readable_hidden_column_stops_the_start_with_advice(
    workshop: Database, hide: str, user: str, reason: str
) -> None:
    workshop.run(f"DROP TABLE IF EXISTS account, part CASCADE; {MADE}", user=OWNER)
    with pytest.raises(ValueError, match=reason):
        async with inside("--hide", hide, workshop.server.url(workshop.name, user)):
            pass


async def test_a_readable_partition_of_a_hidden_column_stops_the_start(workshop: Database) -> None:
    workshop.run(
        f"DROP TABLE IF EXISTS account, part CASCADE; {MADE}; GRANT SELECT ON part_1 TO {READER}", user=OWNER
    )
    with pytest.raises(ValueError, match=r"names part_1\.secret"):
        async with inside("--hide", "part.secret", workshop.reader):
            pass
