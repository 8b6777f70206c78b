"""PostgreSQL's terms for clients."""

from servers.common.sql.dialect import Dialect
from servers.common.sql.uris import Uris

from .engine.statement_text import find_parameters, split_statements

POSTGRES = Dialect(
    uris=Uris("postgres"),
    title="PostgreSQL",
    find_parameters=find_parameters,
    split_statements=split_statements,
    parameters="values for $1, $2 and so on; write NULL in the query",
    read_only="this server was started without --allow-write, and without a database with :rw",
    words={
        "reading": "SELECT, WITH, VALUES, TABLE, EXPLAIN, SHOW",
        "estimating": " approximate number of rows",
        "describing": "columns, keys, checks, indexes, triggers, partitions, comments",
        "scripting": "SQL that recreates the types, tables, indexes, views and triggers.",
        "key": "",
        "numbers": "bigint and numeric",
        "text": "text",
    },
)
