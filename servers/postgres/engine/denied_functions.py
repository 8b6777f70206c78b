"""Functions that clients' statements may not call, by name, with the reason.

A read-only transaction prevents changes to tables. These functions have other effects: on files, on other sessions,
on PostgreSQL as a whole, or on locks that outlive the transaction; or they run a string as SQL, which would not be
checked. Calls inside functions that the database defines are not detected; only the permissions of the role limit
those.
"""

import re

_REASONS = {
    "waits": ("pg_sleep*", "pg_wal_replay_wait*"),
    "takes a lock that outlives the query": ("pg_advisory_*", "pg_try_advisory_*"),
    "connects to other servers": (
        *("dblink*", "postgres_fdw_*", "query_export_to_s3", "http", "http_get", "http_post", "http_put"),
        *("http_patch", "http_delete", "http_head"),
    ),
    "works on large objects": ("lo_*", "loread", "lowrite"),
    "works on the server's files": (
        *("pg_read_file*", "pg_read_binary_file*", "pg_ls_*", "pg_stat_file*", "pg_file_*", "pg_logdir_ls"),
        *("pg_current_logfile", "pg_logfile_*"),
    ),
    "ends the work of other users": ("pg_terminate_backend", "pg_cancel_backend", "pg_log_backend_memory_contexts"),
    "acts on the server as a whole": (
        *("pg_reload_conf", "pg_rotate_logfile*", "pg_switch_wal", "pg_create_restore_point", "pg_promote"),
        *("pg_*backup*", "pg_wal_replay_*", "pg_*replication*", "pg_logical_*", "pg_sync_replication_slots"),
        *("pg_import_system_collations", "pg_export_snapshot", "pg_log_standby_snapshot", "pg_extension_config_dump"),
        *("pg_prewarm", "autoprewarm_*", "pg_buffercache_evict*", "pg_truncate_visibility_map", "heap_force_*"),
    ),
    "changes settings": ("set_config",),
    "changes a sequence": ("nextval", "setval"),
    "sends notifications": ("pg_notify",),
    "removes statistics": ("pg_stat_reset*", "pg_stat_statements_reset*"),
    "changes statistics": ("pg_restore_*_stats", "pg_clear_*_stats"),
    "changes an index": ("brin_summarize_*", "brin_desummarize_*", "gin_clean_pending_list"),
    "runs a string as SQL": (
        *("query_to_xml*", "cursor_to_xml*", "table_to_xml*", "schema_to_xml*", "database_to_xml*"),
        *("ts_stat", "ts_rewrite", "crosstab*", "connectby", "xpath_table"),
    ),
    "creates hypothetical indexes": ("hypopg_*", "hypopg"),
}


def _compile(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(pattern.replace("*", ".*") for pattern in patterns), re.DOTALL)


_PATTERNS = [(reason, _compile(patterns)) for reason, patterns in _REASONS.items()]
_ANY = _compile(tuple(pattern for patterns in _REASONS.values() for pattern in patterns))


def find_reason(function: str) -> str | None:
    """Return the reason why the function with that name may not be called, as a verb phrase; None if it may."""
    if _ANY.fullmatch(function) is None:
        return None
    return next((reason for reason, pattern in _PATTERNS if pattern.fullmatch(function)), None)
