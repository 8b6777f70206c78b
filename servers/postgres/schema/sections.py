"""Further details of one table or view: constraints, partitions, policies, triggers and more."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from servers.common.sql.texts import shorten
from shared.text import join_lines

from ..engine.link import Ask
from .columns import read_types
from .entries import Relation

_MAX_LINE_LENGTH = 1_000
"""Maximum number of characters of a constraint, a policy or a trigger that are shown."""
_MAX_CHILDREN = 1_000
"""Maximum number of partitions and inheriting tables that are listed."""
_MAX_COMMENT_LENGTH = 2_000
"""Maximum number of characters of a comment that are shown."""

_PROPERTIES = """
    SELECT c.relpersistence = 'u', c.relispopulated, pg_catalog.row_security_active(c.oid),
        c.relrowsecurity, pg_catalog.has_table_privilege(c.oid, 'SELECT')
            OR pg_catalog.has_any_column_privilege(c.oid, 'SELECT'),
        CASE WHEN c.relkind = ANY ('{v,m}'::pg_catalog."char"[]) THEN pg_catalog.pg_get_viewdef(c.oid, true) END,
        CASE WHEN c.relkind = 'p' THEN pg_catalog.pg_get_partkeydef(c.oid) END,
        pg_catalog.array_to_string(c.reloptions, ', '),
        (SELECT pg_catalog.string_agg(pg_catalog.quote_ident(a.attname), ', ' ORDER BY a.attnum)
            FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
                AND NOT pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT'))
    FROM pg_catalog.pg_class AS c WHERE c.oid = $1::pg_catalog.oid"""
_LINES = """
    SELECT 'constraints', k.conname::pg_catalog.text,
        pg_catalog.quote_ident(k.conname) || ' ' || pg_catalog.pg_get_constraintdef(k.oid)
    FROM pg_catalog.pg_constraint AS k
    WHERE k.conrelid = $1::pg_catalog.oid AND (k.contype = 'c' OR k.contype = 'x')
    UNION ALL
    SELECT CASE WHEN c.relispartition THEN 'partition of' ELSE 'inherits from' END, i.inhseqno::pg_catalog.text,
        i.inhparent::pg_catalog.regclass::pg_catalog.text
            || coalesce(' ' || pg_catalog.pg_get_expr(c.relpartbound, c.oid), '')
    FROM pg_catalog.pg_inherits AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid
    WHERE i.inhrelid = $1::pg_catalog.oid
    UNION ALL
    (SELECT CASE WHEN c.relispartition THEN 'partitions' ELSE 'inherited by' END, c.relname::pg_catalog.text,
        c.oid::pg_catalog.regclass::pg_catalog.text
            || coalesce(' ' || pg_catalog.pg_get_expr(c.relpartbound, c.oid), '')
    FROM pg_catalog.pg_inherits AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid
    WHERE i.inhparent = $1::pg_catalog.oid ORDER BY 2 LIMIT $2::pg_catalog.int4)
    UNION ALL
    SELECT 'policies', p.polname::pg_catalog.text, pg_catalog.concat_ws(' ',
        pg_catalog.quote_ident(p.polname), CASE WHEN p.polpermissive THEN 'permissive' ELSE 'restrictive' END,
        'for', CASE p.polcmd WHEN 'r' THEN 'select' WHEN 'a' THEN 'insert' WHEN 'w' THEN 'update'
            WHEN 'd' THEN 'delete' ELSE 'all' END,
        'to', pg_catalog.array_to_string(ARRAY(
            SELECT CASE r.role WHEN 0 THEN 'public' ELSE pg_catalog.pg_get_userbyid(r.role)::pg_catalog.text END
            FROM pg_catalog.unnest(p.polroles) AS r(role)), ', '),
        'using (' || pg_catalog.pg_get_expr(p.polqual, p.polrelid) || ')',
        'with check (' || pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid) || ')')
    FROM pg_catalog.pg_policy AS p WHERE p.polrelid = $1::pg_catalog.oid
    UNION ALL
    SELECT 'triggers', t.tgname::pg_catalog.text, pg_catalog.pg_get_triggerdef(t.oid, true)
        || CASE t.tgenabled WHEN 'D' THEN ' -- disabled' ELSE '' END
    FROM pg_catalog.pg_trigger AS t WHERE t.tgrelid = $1::pg_catalog.oid AND NOT t.tgisinternal
    UNION ALL
    SELECT 'rules', r.rulename::pg_catalog.text, pg_catalog.pg_get_ruledef(r.oid, true)
    FROM pg_catalog.pg_rewrite AS r WHERE r.ev_class = $1::pg_catalog.oid AND r.rulename <> '_RETURN'"""
_ORDER = (
    "comment", "partitioned by", "partition of", "partitions", "inherits from", "inherited by",
    "constraints", "types", "policies", "rules", "options", "not readable",
)  # fmt: skip


class Details(NamedTuple):
    """The details of one table or view, except its columns, keys and indexes."""

    properties: Sequence[str]
    """Properties of the whole table or view, in words."""
    sql: str
    """The statement that creates a view; empty for tables."""
    triggers: Sequence[str]
    sections: Mapping[str, Sequence[str]]


async def read_details(ask: Ask, relation: Relation) -> Details:
    """Read the details of a relation. Raises SqlError."""
    ((is_unlogged, is_populated, is_secured, has_security, is_readable, view, key, options, unreadable),) = await ask(
        _PROPERTIES, relation.oid
    )
    properties = {
        "unlogged": is_unlogged,
        "not populated yet: REFRESH MATERIALIZED VIEW populates it": not is_populated,
        "row-level security: the role sees only the rows that the policies allow": is_secured,
        "row-level security, but not for this role": has_security and not is_secured,
        "the role of this server may not read it": not is_readable,
    }
    sections: dict[str, list[str]] = {}
    for title, _, line in sorted(await ask(_LINES, relation.oid, _MAX_CHILDREN)):
        sections.setdefault(title, []).append(shorten(join_lines(line), _MAX_LINE_LENGTH))
    triggers = sections.pop("triggers", [])
    sections["types"] = await read_types(ask, relation.oid)
    sections["comment"] = [shorten(join_lines(relation.comment), _MAX_COMMENT_LENGTH)] if relation.comment else []
    sections["partitioned by"] = [key] if key else []
    sections["options"] = [options] if options else []
    sections["not readable"] = [shorten(unreadable, _MAX_LINE_LENGTH)] if unreadable and is_readable else []
    return Details(
        [word for word, is_true in properties.items() if is_true],
        f"CREATE {relation.kind.upper()} {relation.name} AS\n{view}" if view else "",
        triggers,
        {title: sections[title] for title in _ORDER if sections.get(title)},
    )
