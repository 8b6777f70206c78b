"""The tables and views of a database that the role may see.

Queries on the catalog qualify every name with its schema, so that other users' tables and functions with the same
names are never used.
"""

from collections.abc import Iterable
from typing import NamedTuple

from servers.common.sql.schema.records import Entry
from servers.common.sql.texts import SqlName

from ..engine.link import Ask

KINDS = {"r": "table", "p": "partitioned table", "v": "view", "m": "materialized view", "f": "foreign table"}
"""The kinds of relations, by the letter in `pg_class.relkind`."""

VISIBLE = """c.relnamespace = ANY (ARRAY(
    SELECT s.oid FROM pg_catalog.pg_namespace AS s
    WHERE s.nspname !~ '^pg_' AND s.nspname <> 'information_schema'
        AND pg_catalog.has_schema_privilege(s.oid, 'USAGE')))"""
"""An SQL condition: the relation `c` is in a schema that the role may use and that is not a system schema."""

SCOPE = f"""c.relkind = ANY ('{{r,p,v,m,f}}'::pg_catalog."char"[])
    AND ($1::pg_catalog.oid IS NULL AND {VISIBLE} OR c.oid = $1::pg_catalog.oid)"""
"""An SQL condition: `c` is the table or view with the oid $1, or if that is NULL, any visible table or view."""

_COUNTS_EMPTY_TABLES = "pg_catalog.current_setting('server_version_num')::pg_catalog.int4 >= 140000"
"""An SQL condition: an estimate of 0 rows means an empty table. Before PostgreSQL 14 it may also mean that ANALYZE
has not run yet."""
_QUERY = f"""
    SELECT c.oid, c.oid::pg_catalog.regclass::pg_catalog.text, c.relkind::pg_catalog.text,
        CASE WHEN c.relkind <> 'v' AND c.reltuples >= 0 AND (c.relpages > 0 OR {_COUNTS_EMPTY_TABLES})
            THEN c.reltuples::pg_catalog.int8 END,
        pg_catalog.obj_description(c.oid, 'pg_class')
    FROM pg_catalog.pg_class AS c WHERE {SCOPE}"""  # noqa: S608


class Relation(NamedTuple):
    """A table or view."""

    oid: int
    name: SqlName
    """The name in the form that statements of this session need: quoted or qualified if necessary."""
    kind: str
    rows: int | None
    """Number of rows estimated by the last ANALYZE; None if it has not run."""
    comment: str | None

    @property
    def entry(self) -> Entry:
        """This relation as an entry of a list."""
        return Entry(self.name, self.kind, "")


async def read_relations(ask: Ask, oid: int | None = None) -> list[Relation]:
    """Return the visible tables and views except system ones, in the order of their names; with an `oid`, only the
    table or view with that oid."""
    relations = [
        Relation(number, SqlName(name), KINDS[kind], rows, comment)
        for number, name, kind, rows, comment in await ask(_QUERY, oid)
    ]
    return sorted(relations, key=lambda relation: relation.name)


def list_estimates(relations: Iterable[Relation]) -> dict[str, int]:
    """Return the numbers of rows that the last ANALYZE estimated, by name; relations without estimate are missing."""
    return {relation.name: relation.rows for relation in relations if relation.rows is not None}
