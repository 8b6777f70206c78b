"""Queries that return the statements that create a schema, one query for each kind of object.

The statements qualify the names of created objects with their schemas. PostgreSQL's own functions write the names of
other objects in the statements, depending on the search path, so the script sets the search path.
"""

from .entries import VISIBLE

_OWN = """NOT EXISTS (SELECT FROM pg_catalog.pg_depend AS e
    WHERE e.classid = '{catalog}'::pg_catalog.regclass AND e.objid = {oid}
        AND (e.deptype = 'e' OR e.deptype = 'i' AND e.refobjid <> e.objid))"""
"""An SQL condition: an object belongs neither to an extension nor to another object. (The sequence of an identity
column, for example, belongs to the column.)"""
_SCHEMAS = """(SELECT s.oid FROM pg_catalog.pg_namespace AS s
    WHERE s.nspname !~ '^pg_' AND s.nspname <> 'information_schema'
        AND pg_catalog.has_schema_privilege(s.oid, 'USAGE'))"""


def _own(catalog: str, oid: str) -> str:
    return _OWN.format(catalog=f"pg_catalog.{catalog}", oid=oid)


def _name(relation: str) -> str:
    """Return an SQL expression for the name of a relation, qualified by its schema."""
    schema = "SELECT pg_catalog.quote_ident(n.nspname) FROM pg_catalog.pg_namespace AS n"
    return (
        f"""({schema} WHERE n.oid = {relation}.relnamespace) || '.' || pg_catalog.quote_ident({relation}.relname)"""
    )


SCHEMAS = f"""
    SELECT 'CREATE SCHEMA ' || pg_catalog.quote_ident(n.nspname) || ';'
        || coalesce(E'\\nCOMMENT ON SCHEMA ' || pg_catalog.quote_ident(n.nspname) || ' IS '
            || pg_catalog.quote_literal(pg_catalog.obj_description(n.oid, 'pg_namespace')) || ';', '')
    FROM pg_catalog.pg_namespace AS n
    WHERE n.oid IN {_SCHEMAS} AND n.nspname <> 'public' AND {_own("pg_namespace", "n.oid")} ORDER BY n.nspname"""  # noqa: S608

EXTENSIONS = """
    SELECT 'CREATE EXTENSION IF NOT EXISTS ' || pg_catalog.quote_ident(x.extname)
        || CASE WHEN n.nspname = 'pg_catalog' THEN '' ELSE ' SCHEMA ' || pg_catalog.quote_ident(n.nspname) END || ';'
    FROM pg_catalog.pg_extension AS x JOIN pg_catalog.pg_namespace AS n ON n.oid = x.extnamespace
    WHERE x.extname <> 'plpgsql' ORDER BY x.oid"""

_ATTRIBUTES = """(SELECT pg_catalog.string_agg(pg_catalog.quote_ident(a.attname) || ' '
    || pg_catalog.format_type(a.atttypid, a.atttypmod), ', ' ORDER BY a.attnum)
    FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped)"""
_DOMAIN = """pg_catalog.format_type(t.typbasetype, t.typtypmod)
    || coalesce(' COLLATE ' || (SELECT l.oid::pg_catalog.regcollation::pg_catalog.text
        FROM pg_catalog.pg_collation AS l JOIN pg_catalog.pg_type AS b ON b.oid = t.typbasetype
        WHERE l.oid = t.typcollation AND t.typcollation <> b.typcollation), '')
    || coalesce(' DEFAULT ' || t.typdefault, '') || CASE WHEN t.typnotnull THEN ' NOT NULL' ELSE '' END
    || coalesce((SELECT pg_catalog.string_agg(' CONSTRAINT ' || pg_catalog.quote_ident(k.conname) || ' '
        || pg_catalog.pg_get_constraintdef(k.oid), '' ORDER BY k.conname)
        FROM pg_catalog.pg_constraint AS k WHERE k.contypid = t.oid AND k.contype = 'c'), '')"""
TYPES = f"""
    SELECT CASE t.typtype WHEN 'd' THEN 'CREATE DOMAIN ' ELSE 'CREATE TYPE ' END
        || pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(t.typname) || ' AS '
        || CASE t.typtype
            WHEN 'e' THEN 'ENUM (' || coalesce((SELECT pg_catalog.string_agg(pg_catalog.quote_literal(e.enumlabel),
                ', ' ORDER BY e.enumsortorder) FROM pg_catalog.pg_enum AS e WHERE e.enumtypid = t.oid), '') || ')'
            WHEN 'd' THEN {_DOMAIN}
            WHEN 'r' THEN 'RANGE (SUBTYPE = ' || (SELECT pg_catalog.format_type(r.rngsubtype, NULL)
                FROM pg_catalog.pg_range AS r WHERE r.rngtypid = t.oid) || ')'
            ELSE '(' || coalesce({_ATTRIBUTES}, '') || ')'
        END || ';'
    FROM pg_catalog.pg_type AS t JOIN pg_catalog.pg_namespace AS n ON n.oid = t.typnamespace
    LEFT JOIN pg_catalog.pg_class AS c ON c.oid = t.typrelid
    WHERE n.oid IN {_SCHEMAS} AND {_own("pg_type", "t.oid")}
        AND (t.typtype = ANY ('{{e,d,r}}'::pg_catalog."char"[]) OR t.typtype = 'c' AND c.relkind = 'c')
    ORDER BY t.oid"""  # noqa: S608

_SEQUENCE = """'CREATE SEQUENCE ' || {name} || ' AS ' || pg_catalog.format_type(q.seqtypid, NULL)
    || ' START ' || q.seqstart || ' INCREMENT ' || q.seqincrement || ' MINVALUE ' || q.seqmin
    || ' MAXVALUE ' || q.seqmax || ' CACHE ' || q.seqcache || CASE WHEN q.seqcycle THEN ' CYCLE' ELSE '' END || ';'"""
SEQUENCES = f"""
    SELECT {_SEQUENCE.format(name=_name("c"))}
    FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_sequence AS q ON q.seqrelid = c.oid
    WHERE {VISIBLE} AND {_own("pg_class", "c.oid")}
    ORDER BY c.oid"""  # noqa: S608
OWNED_SEQUENCES = f"""
    SELECT 'ALTER SEQUENCE ' || {_name("c")} || ' OWNED BY ' || {_name("o")} || '.'
        || pg_catalog.quote_ident(a.attname) || ';'
    FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_depend AS d
        ON d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objid = c.oid AND d.deptype = 'a'
        AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
    JOIN pg_catalog.pg_class AS o ON o.oid = d.refobjid
    JOIN pg_catalog.pg_attribute AS a ON a.attrelid = o.oid AND a.attnum = d.refobjsubid
    WHERE c.relkind = 'S' AND {VISIBLE} AND {_own("pg_class", "c.oid")} ORDER BY c.oid"""  # noqa: S608

_FUNCTIONS = f"""
    SELECT CASE WHEN p.prokind = 'a' THEN '-- aggregate ' || p.oid::pg_catalog.regprocedure::pg_catalog.text
            || ' is not made here' ELSE pg_catalog.rtrim(pg_catalog.pg_get_functiondef(p.oid), E'\\n') || ';' END
    FROM pg_catalog.pg_proc AS p WHERE p.pronamespace IN {_SCHEMAS} AND {_own("pg_proc", "p.oid")}
        AND {{is_late}} (pg_catalog.to_jsonb(p) ->> 'prosqlbody' IS NOT NULL OR EXISTS (
            SELECT FROM pg_catalog.pg_type AS t
            JOIN pg_catalog.pg_class AS c ON c.reltype <> 0 AND (t.oid = c.reltype OR t.typelem = c.reltype)
            WHERE c.relkind <> 'c' AND t.oid = ANY (coalesce(p.proallargtypes, p.proargtypes::pg_catalog.oid[])
                || p.prorettype)))
    ORDER BY p.oid"""  # noqa: S608
EARLY_FUNCTIONS = _FUNCTIONS.format(is_late="NOT")
LATE_FUNCTIONS = _FUNCTIONS.format(is_late="")
"""Functions that can only be created after the tables: those that take or return rows of tables, and those whose body
PostgreSQL parses when they are created (BEGIN ATOMIC, since version 14)."""

_COLUMN = """pg_catalog.quote_ident(a.attname) || ' ' || pg_catalog.format_type(a.atttypid, a.atttypmod)
    || coalesce((SELECT ' COLLATE ' || l.oid::pg_catalog.regcollation::pg_catalog.text
        FROM pg_catalog.pg_collation AS l JOIN pg_catalog.pg_type AS b ON b.oid = a.atttypid
        WHERE l.oid = a.attcollation AND a.attcollation <> b.typcollation), '')
    || CASE a.attidentity WHEN 'a' THEN ' GENERATED ALWAYS AS IDENTITY'
        WHEN 'd' THEN ' GENERATED BY DEFAULT AS IDENTITY' ELSE '' END
    || coalesce(CASE a.attgenerated
        WHEN '' THEN ' DEFAULT ' || pg_catalog.pg_get_expr(d.adbin, d.adrelid)
        ELSE ' GENERATED ALWAYS AS (' || pg_catalog.pg_get_expr(d.adbin, d.adrelid) || ')'
            || CASE a.attgenerated WHEN 's' THEN ' STORED' ELSE ' VIRTUAL' END END, '')
    || CASE WHEN a.attnotnull AND a.attidentity = '' THEN ' NOT NULL' ELSE '' END"""
_BODY = f"""(SELECT coalesce(E'\\n  '
        || pg_catalog.string_agg(b.line, E',\\n  ' ORDER BY b.part, b.place, b.name) || E'\\n', '')
    FROM (
        SELECT 1, a.attnum::pg_catalog.text, a.attnum, {_COLUMN}
        FROM pg_catalog.pg_attribute AS a
        LEFT JOIN pg_catalog.pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attislocal AND NOT c.relispartition
        UNION ALL
        SELECT 2, k.conname::pg_catalog.text, 0,
            'CONSTRAINT ' || pg_catalog.quote_ident(k.conname) || ' ' || pg_catalog.pg_get_constraintdef(k.oid)
        FROM pg_catalog.pg_constraint AS k
        WHERE k.conrelid = c.oid AND k.contype = ANY ('{{p,u,c,x}}'::pg_catalog."char"[])
            AND k.conislocal AND k.conparentid = 0
    ) AS b(part, name, place, line))"""  # noqa: S608
TABLES = f"""
    WITH RECURSIVE deep(oid, depth) AS (
        SELECT c.oid, 0 FROM pg_catalog.pg_class AS c
        WHERE c.relkind = ANY ('{{r,p,f}}'::pg_catalog."char"[]) AND {VISIBLE}
        UNION
        SELECT i.inhrelid, d.depth + 1 FROM deep AS d JOIN pg_catalog.pg_inherits AS i ON i.inhparent = d.oid)
    SELECT CASE WHEN c.relkind = 'f' THEN '-- foreign table ' || {_name("c")} || ' is not made here' ELSE
        CASE c.relpersistence WHEN 'u' THEN 'CREATE UNLOGGED TABLE ' ELSE 'CREATE TABLE ' END || {_name("c")}
        || CASE WHEN c.relispartition THEN (
                SELECT ' PARTITION OF ' || {_name("o")} FROM pg_catalog.pg_inherits AS i
                JOIN pg_catalog.pg_class AS o ON o.oid = i.inhparent WHERE i.inhrelid = c.oid)
                || coalesce(' (' || nullif({_BODY}, '') || ')', '')
                || ' ' || pg_catalog.pg_get_expr(c.relpartbound, c.oid)
            ELSE ' (' || {_BODY} || ')' || coalesce(' INHERITS (' || (
                SELECT pg_catalog.string_agg({_name("o")}, ', ' ORDER BY i.inhseqno) FROM pg_catalog.pg_inherits AS i
                JOIN pg_catalog.pg_class AS o ON o.oid = i.inhparent WHERE i.inhrelid = c.oid) || ')', '') END
        || CASE c.relkind WHEN 'p' THEN ' PARTITION BY ' || pg_catalog.pg_get_partkeydef(c.oid) ELSE '' END
        || coalesce(' WITH (' || pg_catalog.array_to_string(c.reloptions, ', ') || ')', '') || ';' END
    FROM pg_catalog.pg_class AS c
    JOIN (SELECT oid, pg_catalog.max(depth) AS depth FROM deep GROUP BY oid) AS d ON d.oid = c.oid
    WHERE {VISIBLE} AND {_own("pg_class", "c.oid")} ORDER BY d.depth, c.oid"""  # noqa: S608
FOREIGN_KEYS = f"""
    SELECT 'ALTER TABLE ' || {_name("c")} || ' ADD CONSTRAINT ' || pg_catalog.quote_ident(k.conname) || ' '
        || pg_catalog.pg_get_constraintdef(k.oid) || ';'
    FROM pg_catalog.pg_constraint AS k JOIN pg_catalog.pg_class AS c ON c.oid = k.conrelid
    WHERE k.contype = 'f' AND k.conparentid = 0 AND {VISIBLE} AND c.relkind <> 'f' AND {_own("pg_class", "c.oid")}
    ORDER BY c.oid, k.conname"""  # noqa: S608

VIEWS = f"""
    SELECT c.oid, CASE c.relkind WHEN 'v' THEN 'CREATE VIEW ' ELSE 'CREATE MATERIALIZED VIEW ' END || {_name("c")}
        || coalesce(' WITH (' || pg_catalog.array_to_string(c.reloptions, ', ') || ')', '') || E' AS\\n'
        || pg_catalog.rtrim(pg_catalog.pg_get_viewdef(c.oid, true), ';')
        || CASE WHEN c.relispopulated THEN ';' ELSE E'\\n  WITH NO DATA;' END
    FROM pg_catalog.pg_class AS c
    WHERE (c.relkind = 'v' OR c.relkind = 'm') AND {VISIBLE} AND {_own("pg_class", "c.oid")} ORDER BY c.oid"""  # noqa: S608
VIEW_DEPENDENCIES = """
    SELECT DISTINCT r.ev_class, d.refobjid
    FROM pg_catalog.pg_rewrite AS r JOIN pg_catalog.pg_depend AS d
        ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid = r.oid
        AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
    WHERE d.refobjid <> r.ev_class ORDER BY 1, 2"""
INDEXES = f"""
    SELECT pg_catalog.regexp_replace(pg_catalog.pg_get_indexdef(i.oid),
        CASE i.relkind WHEN 'I' THEN ' ON ONLY ' ELSE '^$' END, ' ON ') || ';'
    FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_index AS x ON x.indrelid = c.oid
    JOIN pg_catalog.pg_class AS i ON i.oid = x.indexrelid
    WHERE {VISIBLE} AND NOT i.relispartition AND {_own("pg_class", "c.oid")} AND NOT EXISTS (
        SELECT FROM pg_catalog.pg_constraint AS k
        WHERE k.conindid = x.indexrelid AND k.contype = ANY ('{{p,u,x}}'::pg_catalog."char"[]))
    ORDER BY c.oid, i.relname"""  # noqa: S608
RULES = f"""
    SELECT pg_catalog.pg_get_ruledef(r.oid) FROM pg_catalog.pg_rewrite AS r
    JOIN pg_catalog.pg_class AS c ON c.oid = r.ev_class
    WHERE r.rulename <> '_RETURN' AND {VISIBLE} AND {_own("pg_class", "c.oid")} ORDER BY c.oid, r.rulename"""  # noqa: S608
TRIGGERS = f"""
    SELECT pg_catalog.pg_get_triggerdef(t.oid) || ';' || CASE t.tgenabled
        WHEN 'D' THEN E'\\nALTER TABLE ' || {_name("c")} || ' DISABLE TRIGGER '
            || pg_catalog.quote_ident(t.tgname) || ';' ELSE '' END
    FROM pg_catalog.pg_trigger AS t JOIN pg_catalog.pg_class AS c ON c.oid = t.tgrelid
    WHERE NOT t.tgisinternal AND t.tgparentid = 0 AND {VISIBLE} AND {_own("pg_class", "c.oid")}
    ORDER BY c.oid, t.tgname"""  # noqa: S608
POLICIES = f"""
    SELECT 'ALTER TABLE ' || {_name("c")} || ' ENABLE ROW LEVEL SECURITY;'
        || CASE WHEN c.relforcerowsecurity THEN E'\\nALTER TABLE ' || {_name("c")} || ' FORCE ROW LEVEL SECURITY;'
            ELSE '' END
        || coalesce((SELECT pg_catalog.string_agg(E'\\nCREATE POLICY ' || pg_catalog.quote_ident(p.polname) || ' ON '
            || {_name("c")} || CASE WHEN p.polpermissive THEN '' ELSE ' AS RESTRICTIVE' END
            || ' FOR ' || CASE p.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE'
                WHEN 'd' THEN 'DELETE' ELSE 'ALL' END
            || ' TO ' || (SELECT pg_catalog.string_agg(CASE r.role WHEN 0 THEN 'PUBLIC'
                ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(r.role)) END, ', ')
                FROM pg_catalog.unnest(p.polroles) AS r(role))
            || coalesce(' USING (' || pg_catalog.pg_get_expr(p.polqual, p.polrelid) || ')', '')
            || coalesce(' WITH CHECK (' || pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid) || ')', '') || ';',
            '' ORDER BY p.polname) FROM pg_catalog.pg_policy AS p WHERE p.polrelid = c.oid), '')
    FROM pg_catalog.pg_class AS c
    WHERE c.relrowsecurity AND {VISIBLE} AND {_own("pg_class", "c.oid")} ORDER BY c.oid"""  # noqa: S608
COMMENTS = f"""
    SELECT 'COMMENT ON ' || CASE WHEN t.objsubid > 0 THEN 'COLUMN' WHEN c.relkind = 'v' THEN 'VIEW'
            WHEN c.relkind = 'm' THEN 'MATERIALIZED VIEW' WHEN c.relkind = 'S' THEN 'SEQUENCE'
            WHEN c.relkind = ANY ('{{i,I}}'::pg_catalog."char"[]) THEN 'INDEX' ELSE 'TABLE' END
        || ' ' || {_name("c")} || coalesce('.' || pg_catalog.quote_ident(a.attname), '')
        || ' IS ' || pg_catalog.quote_literal(t.description) || ';'
    FROM pg_catalog.pg_description AS t JOIN pg_catalog.pg_class AS c ON c.oid = t.objoid
    LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = t.objsubid AND t.objsubid > 0
    WHERE t.classoid = 'pg_catalog.pg_class'::pg_catalog.regclass
        AND c.relkind = ANY ('{{r,p,v,m,S,i,I}}'::pg_catalog."char"[]) AND {VISIBLE} AND {_own("pg_class", "c.oid")}
    ORDER BY c.oid, t.objsubid"""  # noqa: S608
