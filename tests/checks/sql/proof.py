"""What a server for readers must not have changed: looked at as the superuser, before a statement and after it."""

import time
from typing import Any, Self

import psycopg

from tests.checks.sql.attacks import CARELESS, PREPARATION, SECRET_QUERY
from tests.servers.postgres.databases import GUARDED, OWNER, PASSWORD, Database

__all__ = ["Proof", "make_careless"]

PATIENCE = 100.0
"""Seconds after which no statement may go on: what PostgreSQL can't stop ends by itself before, also on a busy
machine."""

_LOOK = """
SELECT 'relations', md5(string_agg(c::text, ' ' ORDER BY oid)) FROM pg_class c WHERE oid >= 16384
UNION ALL SELECT 'functions', md5(string_agg(p::text, ' ' ORDER BY oid)) FROM pg_proc p
UNION ALL SELECT 'schemas', string_agg(n::text, ' ' ORDER BY oid) FROM pg_namespace n WHERE nspname !~ '^pg_t'
UNION ALL SELECT 'comments', md5(string_agg(d::text, ' ' ORDER BY d::text)) FROM pg_description d
UNION ALL SELECT 'extensions', string_agg(extname, ' ' ORDER BY oid) FROM pg_extension
UNION ALL SELECT 'foreign servers', string_agg(srvname, ' ' ORDER BY oid) FROM pg_foreign_server
UNION ALL SELECT 'collations', count(*)::text FROM pg_collation
UNION ALL SELECT 'roles', string_agg(r::text, ' ' ORDER BY oid) FROM pg_authid r
UNION ALL SELECT 'settings of roles', string_agg(s::text, ' ') FROM pg_db_role_setting s
UNION ALL SELECT 'settings', md5(string_agg(name || setting, ' ' ORDER BY name)) FROM pg_settings
UNION ALL SELECT 'loaded', pg_conf_load_time()::text
UNION ALL SELECT 'sequences', string_agg(s::text, ' ' ORDER BY sequencename) FROM pg_sequences s
UNION ALL SELECT 'large objects', string_agg(l::text, ' ' ORDER BY oid) FROM pg_largeobject_metadata l
UNION ALL SELECT 'their bytes', string_agg(l::text, ' ' ORDER BY loid, pageno) FROM pg_largeobject l
UNION ALL SELECT 'slots', count(*)::text FROM pg_replication_slots
UNION ALL SELECT 'origins', count(*)::text FROM pg_replication_origin
UNION ALL SELECT 'prepared', count(*)::text FROM pg_prepared_xacts
UNION ALL SELECT 'advisory locks', count(*)::text FROM pg_locks WHERE locktype = 'advisory'
UNION ALL SELECT 'statistics', stats_reset::text FROM pg_stat_database WHERE datname = current_database()
"""
_TABLES = """
SELECT string_agg(format('SELECT %1$L, count(*), sum(hashtext(t::text)::bigint) FROM %1$s t', oid::regclass),
  ' UNION ALL ' ORDER BY oid) FROM pg_class WHERE relkind IN ('r', 'm') AND oid >= 16384
"""
_AT_WORK = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND usename = %s AND pid <> %s AND xact_start IS NOT NULL
    AND state <> 'idle in transaction'
"""


def make_careless(database: Database) -> None:
    """Gives the database what attacks make use of."""
    database.run(CARELESS, user=OWNER)
    database.run(PREPARATION)


class Proof:
    """Looks at a database, with sessions that an attack could end or tell something. Close it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._looking = database.server.connect(database.name)
        self._victim = database.server.connect(database.name, GUARDED, PASSWORD)
        self._secret = database.server.connect(database.name, OWNER)
        self._secret.execute(SECRET_QUERY)
        self._listening = database.server.connect(database.name)
        self._listening.execute("LISTEN news")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        for connection in (self._looking, self._victim, self._secret, self._listening):
            connection.close()

    def look(self) -> dict[str, Any]:
        """The state of everything that an attack may not change, by what it is."""
        found = dict(self._looking.execute(_LOOK).fetchall())
        ((tables,),) = self._looking.execute(_TABLES).fetchall()
        found |= {f"rows of {name}": facts for name, *facts in self._looking.execute(tables).fetchall()}
        data = self.database.server.data
        for folder in (data.parent, data, data / "pg_snapshots"):
            found[f"files of {folder.name}"] = sorted(file.name for file in folder.iterdir())
        found["sessions"] = [_lives(connection) for connection in (self._victim, self._secret, self._listening)]
        found["notifications"] = [one.payload for one in self._listening.notifies(timeout=0)]
        return found

    def wait_for_the_end(self, seconds: float = PATIENCE) -> int:
        """How many transactions of the reader are at work once they had time to end. Those that wait are kept for a
        while, for who asks for further rows."""
        ends = time.monotonic() + seconds
        while True:
            victim = self._victim.info.backend_pid
            ((count,),) = self._looking.execute(_AT_WORK, (GUARDED, victim)).fetchall()
            if not count or time.monotonic() > ends:
                return int(count)
            time.sleep(0.02)

    def find_leaks(self, text: str) -> list[str]:
        """What is in a text that nobody should be told."""
        ((directory,),) = self._looking.execute("SELECT current_setting('data_directory')").fetchall()
        told = ("root:x:0", "SCRAM-SHA-256", "launch code", "4242.42", "/usr/lib", "/usr/share")
        secrets = [PASSWORD, directory, *told]
        return [secret for secret in secrets if secret in text]


def _lives(connection: psycopg.Connection[Any]) -> bool:
    try:
        connection.execute("SELECT 1")
    except psycopg.OperationalError:
        return False
    return True
