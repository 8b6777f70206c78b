"""Our own catalog queries, whose names are schema-qualified so that no search path can redirect them."""

import re

from servers.postgres import catalog
from servers.postgres.health import health, indexes, queries
from servers.postgres.health import slow_statements as slow
from servers.postgres.query import plans, rows
from servers.postgres.schema import columns, definitions, entries, names, sections, statistics
from servers.postgres.schema import indexes as keys

MODULES = (catalog, columns, entries, keys, names, sections, definitions, statistics)
OTHERS = (health, indexes, queries, slow, plans, rows)
QUESTIONS = [
    value
    for module in (*MODULES, *OTHERS)
    for value in vars(module).values()
    if isinstance(value, str) and "SELECT" in value
]
# These are syntax, not functions.
SYNTAX = {"coalesce", "extract", "greatest", "nullif"}
LITERAL = re.compile(r"E?'(?:[^']|'')*'")
CALL = re.compile(r'(?<![\w."])(?<!AS )(?<!RECURSIVE )([a-z_]+) ?\(')
CAST = re.compile(r"::(?!pg_catalog\.)(\S+)")
RELATION = re.compile(r"\b(?:FROM|JOIN) ([a-z_]+)(?![\w.(])")
COMMON = re.compile(r"(\w+)(?:\([\w, ]+\))? AS (?:MATERIALIZED )?\(")


def test_every_name_in_our_queries_is_schema_qualified() -> None:
    for sql in QUESTIONS:
        plain = LITERAL.sub("''", sql)
        common = set(COMMON.findall(plain))
        assert set(CALL.findall(plain)) <= SYNTAX | common, sql
        assert CAST.findall(plain) == [], sql
        assert set(RELATION.findall(plain)) <= common, sql
