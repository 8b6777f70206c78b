"""The queries of the health checks. The functions in `checks` format their rows."""

from ..schema.entries import VISIBLE

_OLD_SECONDS = 60
"""Transactions of at least this age, in seconds, are listed."""
_MIN_USED_SHARE = 0.7
"""Sequences that have used at least this share of their values are listed."""

SEES_ALL = "SELECT pg_catalog.pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')"
CONNECTIONS = """
    SELECT pg_catalog.count(*), pg_catalog.count(*) FILTER (WHERE a.state = 'active'),
        pg_catalog.count(*) FILTER (WHERE a.state LIKE 'idle in transaction%'),
        pg_catalog.current_setting('max_connections')::pg_catalog.int4,
        pg_catalog.current_setting('superuser_reserved_connections')::pg_catalog.int4
    FROM pg_catalog.pg_stat_activity AS a WHERE a.backend_type = 'client backend'"""
CACHE = """
    SELECT coalesce((SELECT pg_catalog.sum(t.heap_blks_hit) FROM pg_catalog.pg_statio_user_tables AS t), 0),
        coalesce((SELECT pg_catalog.sum(t.heap_blks_read) FROM pg_catalog.pg_statio_user_tables AS t), 0),
        coalesce((SELECT pg_catalog.sum(t.idx_blks_hit) FROM pg_catalog.pg_statio_user_tables AS t), 0),
        coalesce((SELECT pg_catalog.sum(t.idx_blks_read) FROM pg_catalog.pg_statio_user_tables AS t), 0),
        pg_catalog.current_setting('shared_buffers'), d.temp_bytes, d.deadlocks
    FROM pg_catalog.pg_stat_database AS d WHERE d.datname = pg_catalog.current_database()"""
TRANSACTIONS = f"""
    SELECT a.pid, coalesce(a.usename::pg_catalog.text, ''), a.state,
        extract(epoch FROM pg_catalog.clock_timestamp() - a.xact_start)::pg_catalog.float8,
        extract(epoch FROM pg_catalog.clock_timestamp() - a.state_change)::pg_catalog.float8,
        pg_catalog.age(coalesce(a.backend_xmin, a.backend_xid)), a.query
    FROM pg_catalog.pg_stat_activity AS a
    WHERE a.pid <> pg_catalog.pg_backend_pid() AND a.state IS NOT NULL
        AND a.xact_start < pg_catalog.clock_timestamp() - interval '{_OLD_SECONDS} s'
    ORDER BY a.xact_start LIMIT 100"""  # noqa: S608
BLOCKED = """
    SELECT a.pid, coalesce(a.usename::pg_catalog.text, ''),
        extract(epoch FROM pg_catalog.clock_timestamp() - a.state_change)::pg_catalog.float8, l.mode,
        l.relation::pg_catalog.regclass::pg_catalog.text,
        pg_catalog.array_to_string(pg_catalog.pg_blocking_pids(a.pid), ', '), a.query
    FROM pg_catalog.pg_stat_activity AS a
    LEFT JOIN LATERAL (SELECT k.mode, k.relation FROM pg_catalog.pg_locks AS k
        WHERE k.pid = a.pid AND NOT k.granted LIMIT 1) AS l ON true
    WHERE a.wait_event_type = 'Lock' AND pg_catalog.cardinality(pg_catalog.pg_blocking_pids(a.pid)) > 0
    ORDER BY a.state_change LIMIT 100"""
TABLES = """
    SELECT t.relid::pg_catalog.regclass::pg_catalog.text, t.n_live_tup, t.n_dead_tup,
        extract(epoch FROM pg_catalog.now() - greatest(t.last_vacuum, t.last_autovacuum))::pg_catalog.float8,
        extract(epoch FROM pg_catalog.now() - greatest(t.last_analyze, t.last_autoanalyze))::pg_catalog.float8,
        t.n_mod_since_analyze, coalesce(pg_catalog.pg_table_size(t.relid), 0)
    FROM pg_catalog.pg_stat_user_tables AS t
    WHERE t.n_dead_tup > 1000 AND t.n_dead_tup > 0.1 * t.n_live_tup
        OR t.n_mod_since_analyze > 1000 AND t.n_mod_since_analyze > 0.2 * t.n_live_tup
    ORDER BY t.n_dead_tup + t.n_mod_since_analyze DESC LIMIT 100"""
WRAPAROUND = """
    SELECT d.datname::pg_catalog.text, pg_catalog.age(d.datfrozenxid)::pg_catalog.int8,
        pg_catalog.current_setting('autovacuum_freeze_max_age')::pg_catalog.int8, o.name, o.age
    FROM pg_catalog.pg_database AS d LEFT JOIN (
        SELECT c.oid::pg_catalog.regclass::pg_catalog.text, pg_catalog.age(c.relfrozenxid)::pg_catalog.int8
        FROM pg_catalog.pg_class AS c WHERE c.relkind = ANY ('{r,m,t}'::pg_catalog."char"[])
        ORDER BY 2 DESC LIMIT 1) AS o(name, age) ON pg_catalog.age(d.datfrozenxid) > 100000000
    WHERE d.datname = pg_catalog.current_database()"""
INDEXES = f"""
    WITH i AS (
        SELECT x.indexrelid, x.indrelid, x.indisvalid, pg_catalog.pg_relation_size(x.indexrelid) AS size, s.idx_scan,
            x.indisunique OR EXISTS (
                SELECT FROM pg_catalog.pg_constraint AS k WHERE k.conindid = x.indexrelid) AS needed,
            pg_catalog.concat_ws(' ', x.indrelid, x.indkey, x.indclass, x.indcollation, x.indoption, x.indnkeyatts,
                coalesce(pg_catalog.pg_get_expr(x.indexprs, x.indrelid), ''),
                coalesce(pg_catalog.pg_get_expr(x.indpred, x.indrelid), ''), am.amname) AS definition
        FROM pg_catalog.pg_index AS x JOIN pg_catalog.pg_class AS c ON c.oid = x.indrelid
        JOIN pg_catalog.pg_class AS n ON n.oid = x.indexrelid AND n.relkind = 'i'
        JOIN pg_catalog.pg_am AS am ON am.oid = n.relam
        LEFT JOIN pg_catalog.pg_stat_user_indexes AS s ON s.indexrelid = x.indexrelid
        WHERE {VISIBLE})
    SELECT f.kind, f.indexrelid::pg_catalog.regclass::pg_catalog.text,
        f.indrelid::pg_catalog.regclass::pg_catalog.text, f.size, f.other::pg_catalog.regclass::pg_catalog.text
    FROM (
        SELECT 1 AS rank, 'not valid' AS kind, i.indexrelid, i.indrelid, i.size, NULL::pg_catalog.oid AS other
        FROM i WHERE NOT i.indisvalid
        UNION ALL
        SELECT 2, 'double', i.indexrelid, i.indrelid, i.size, o.indexrelid FROM i JOIN i AS o
            ON o.definition = i.definition AND (o.needed, -o.indexrelid::pg_catalog.int8)
                > (i.needed, -i.indexrelid::pg_catalog.int8)
        WHERE NOT i.needed
        UNION ALL
        SELECT 3, 'never used since statistics began', i.indexrelid, i.indrelid, i.size, NULL
        FROM i WHERE i.idx_scan = 0 AND NOT i.needed AND i.indisvalid AND i.size > 1000000
    ) AS f ORDER BY f.rank, f.size DESC LIMIT 100"""  # noqa: S608
SEQUENCES = f"""
    WITH q AS (
        SELECT c.oid, s.data_type::pg_catalog.text AS kind, s.cycle, s.last_value IS NULL
                AND NOT pg_catalog.has_sequence_privilege(c.oid, 'SELECT, USAGE') AS is_hidden,
            CASE WHEN s.increment_by > 0 THEN s.last_value::pg_catalog.numeric - s.min_value
                ELSE s.max_value::pg_catalog.numeric - s.last_value END
                / nullif(s.max_value::pg_catalog.numeric - s.min_value, 0) AS used
        FROM pg_catalog.pg_sequences AS s JOIN pg_catalog.pg_namespace AS n ON n.nspname = s.schemaname
        JOIN pg_catalog.pg_class AS c ON c.relnamespace = n.oid AND c.relname = s.sequencename
        WHERE {VISIBLE})
    (SELECT q.oid::pg_catalog.regclass::pg_catalog.text, q.used::pg_catalog.float8, q.kind FROM q
    WHERE q.used > {_MIN_USED_SHARE} AND NOT q.cycle ORDER BY q.used DESC LIMIT 10)
    UNION ALL
    SELECT NULL, pg_catalog.count(*), NULL FROM q WHERE q.is_hidden HAVING pg_catalog.count(*) > 0"""  # noqa: S608
REPLICATION = """
    SELECT 'standby', coalesce(nullif(r.application_name, ''), 'without a name'),
        coalesce(r.state, 'not allowed for this role'),
        CASE WHEN NOT pg_catalog.pg_is_in_recovery()
            THEN pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), r.replay_lsn)::pg_catalog.int8 END,
        extract(epoch FROM r.replay_lag)::pg_catalog.float8
    FROM pg_catalog.pg_stat_replication AS r
    UNION ALL
    SELECT 'slot', s.slot_name::pg_catalog.text, CASE WHEN s.active THEN 'in use' ELSE 'not in use' END,
        CASE WHEN NOT pg_catalog.pg_is_in_recovery()
            THEN pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), s.restart_lsn)::pg_catalog.int8 END, NULL
    FROM pg_catalog.pg_replication_slots AS s
    UNION ALL
    SELECT 'this server', 'standby', 'replays what it receives', NULL,
        extract(epoch FROM pg_catalog.now() - pg_catalog.pg_last_xact_replay_timestamp())::pg_catalog.float8
    WHERE pg_catalog.pg_is_in_recovery()"""
SETTINGS = """
    SELECT pg_catalog.current_setting('server_version'),
        extract(epoch FROM pg_catalog.now() - pg_catalog.pg_postmaster_start_time())::pg_catalog.float8,
        pg_catalog.pg_database_size(pg_catalog.current_database()),
        pg_catalog.current_setting('fsync'), pg_catalog.current_setting('full_page_writes'),
        pg_catalog.current_setting('autovacuum'), pg_catalog.current_setting('track_counts'),
        pg_catalog.current_setting('data_checksums')"""
