"""What differs between SQLite and other SQL servers in texts for clients and in the parsing of statements."""

from servers.common.sql.dialect import Dialect
from servers.common.sql.uris import Uris

from .engine.sql import find_parameters, split_statements

SQLITE = Dialect(
    uris=Uris("sqlite"),
    title="SQLite",
    find_parameters=find_parameters,
    split_statements=split_statements,
    parameters="values for ? in order; write NULL and blobs in the query",
    read_only="this server was started without --allow-write, and without --db NAME=PATH:rw",
    words={
        "reading": "SELECT, WITH, VALUES, EXPLAIN, PRAGMA that reads",
        "estimating": ", after ANALYZE, approximate number of rows",
        "describing": "columns, keys, indexes, triggers, its CREATE statement with the checks",
        "explaining": "Show how SQLite would run a statement: the plan as a tree, and which tables are scanned in "
        "full. A CREATE INDEX before it is only simulated.",
        "scripting": "The SQL that created the tables, indexes, views and triggers.",
        "key": ", or the rowid if there is none",
        "numbers": "INTEGER and REAL",
        "text": "TEXT",
    },
    reads_at_once=True,
)
