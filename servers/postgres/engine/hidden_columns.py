"""Checks that the role of this program may not read the tables and columns that the operator wants hidden.

PostgreSQL itself enforces the permissions. This program only refuses to start if the role may read a hidden one.
"""

from collections.abc import Sequence

from .link import Ask

# Partitions and child tables are checked as well: they have the same columns, but permissions of their own. The owner
# of a table counts as able to read it, since it may grant itself any permission.
_QUERY = """
    WITH RECURSIVE hidden(oid) AS (
        SELECT pg_catalog.to_regclass($1)::pg_catalog.oid
        UNION
        SELECT i.inhrelid FROM hidden AS h JOIN pg_catalog.pg_inherits AS i ON i.inhparent = h.oid)
    SELECT c.oid::pg_catalog.regclass::pg_catalog.text, pg_catalog.quote_ident(a.attname),
        pg_catalog.pg_has_role(session_user, c.relowner, 'MEMBER') OR CASE
            WHEN a.attnum IS NOT NULL THEN pg_catalog.has_column_privilege(session_user, c.oid, a.attnum, 'SELECT')
            ELSE pg_catalog.has_table_privilege(session_user, c.oid, 'SELECT')
                OR pg_catalog.has_any_column_privilege(session_user, c.oid, 'SELECT') END,
        (SELECT pg_catalog.string_agg(pg_catalog.quote_ident(o.attname), ', ' ORDER BY o.attnum)
            FROM pg_catalog.pg_attribute AS o
            WHERE o.attrelid = c.oid AND o.attnum > 0 AND NOT o.attisdropped AND o.attname <> a.attname),
        pg_catalog.quote_ident(session_user)
    FROM hidden AS h JOIN pg_catalog.pg_class AS c ON c.oid = h.oid
    LEFT JOIN pg_catalog.pg_attribute AS a
        ON a.attrelid = c.oid AND a.attname = $2 AND a.attnum > 0 AND NOT a.attisdropped
    WHERE $2::pg_catalog.text IS NULL OR a.attnum IS NOT NULL"""


async def check_hidden(ask: Ask, names: Sequence[str], database: str) -> set[str]:
    """Return those of the names (TABLE or TABLE.COLUMN) that the database does not have.

    Raises ValueError for a name that the role may read, with the statements that revoke this permission.
    """
    unknown = set()
    for name in names:
        table, _, column = name.rpartition(".")
        # A.B may be SCHEMA.TABLE or TABLE.COLUMN, so try both; A.B.C is always a column.
        rows = await ask(_QUERY, name, None) if "." not in table else []
        if table and not rows:
            rows = await ask(_QUERY, table, column)
        if not rows:
            unknown.add(name)
        for relation, quoted_column, is_readable, other_columns, role in rows:
            if is_readable:
                readable = relation if quoted_column is None else f"{relation}.{quoted_column}"
                remedy = f"REVOKE SELECT ON {relation} FROM {role}"  # noqa: S608 - PostgreSQL wrote the names
                has_others = quoted_column is not None and other_columns
                remedy += f"; GRANT SELECT ({other_columns}) ON {relation} TO {role}" if has_others else ""
                raise ValueError(
                    f"{database}: --hide names {readable}, and the role {role} may read it. Use a role that does "
                    f"not own the table and is not in pg_read_all_data, and for example: {remedy}"
                )
    return unknown
