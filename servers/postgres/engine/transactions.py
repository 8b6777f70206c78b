"""How a transaction of ours begins and ends: everything that a statement needs is set for its transaction alone.

A pooler gives a server connection to somebody else as soon as a transaction has ended, so nothing is set for a
session, and what outlives a rollback is taken back in the same message that ends the transaction.
"""

import os
from collections.abc import Mapping

from servers.postgres.engine.deadline import Limits
from servers.postgres.sql import quote

_BACKSTOP = 5.0
"""Seconds beyond the time of a statement after which PostgreSQL ends it by itself, should this process be gone."""
_IDLE = 120.0
"""Seconds after which PostgreSQL ends a transaction that nobody goes on with."""
_FORMS = {
    # How strings are read and values written, whatever the role or the database is set to.
    "standard_conforming_strings": "on",
    "DateStyle": "ISO",
    "IntervalStyle": "iso_8601",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "xmlbinary": "base64",
    "jit": "off",
    "idle_in_transaction_session_timeout": str(round(_IDLE * 1_000)),
}
_CHECK_CLIENT = {"client_connection_check_interval": "2000"}
"""Has PostgreSQL see every two seconds whether this process still is there: what it runs for one that was killed ends
then."""
SERVED_BY = """SELECT pg_catalog.pg_backend_pid(),
    pg_catalog.current_setting('server_version_num')::pg_catalog.int4 >= 140000
    AND pg_catalog.version() ~ 'linux|darwin|bsd'"""
"""The process that serves a connection, and whether it can tell that a client is gone (since version 14, where its
system can tell)."""

# LISTEN, temporary tables and the last values of sequences may come from a function that a change called.
FORGET = "UNLISTEN *; DISCARD TEMP; DISCARD SEQUENCES"


class TransactionStart:
    """The statements that begin a transaction on one connection."""

    def __init__(self, limits: Limits, own: Mapping[str, str], *, checks_client: bool) -> None:
        """`own` are settings that the operator gave in the URL; none allows more time than `limits` do."""
        settings = _FORMS | (_CHECK_CLIENT if checks_client else {})
        # 0 would mean to wait for ever.
        self._lock = _shorter(max(round(limits.busy_seconds * 1_000), 1), own.get("lock_timeout"))
        self._statement = own.get("statement_timeout")
        settings["lock_timeout"] = str(self._lock)
        lines = [f"SET LOCAL {name} = '{value}'" for name, value in settings.items()]
        if "search_path" in own:
            lines.append(f"SET LOCAL search_path = {', '.join(map(quote, own['search_path'].split(',')))}")
        self._settings = "; ".join(lines)

    def format(self, mode: str, seconds: float) -> str:
        """One message that begins a transaction of that `mode`, whose statements take as long as `seconds`."""
        most = _shorter(round((seconds + _BACKSTOP) * 1_000), self._statement)
        return f"BEGIN {mode}; SET LOCAL statement_timeout = {most}; {self._settings}"


def format_end(*, writes: bool) -> str:
    """One message that rolls back, and takes back what a rollback leaves: locks of the session (manual, Advisory
    Locks), the state of random(), and where it `writes` the last values of sequences."""
    forget = "DISCARD SEQUENCES; " if writes else ""
    return f"ROLLBACK; {forget}{format_release()}"


def format_release() -> str:
    """A statement that gives back locks of the session, and makes random() as unforeseeable as at first."""
    seed = int.from_bytes(os.urandom(6), "big") / 2**48
    return f"SELECT pg_catalog.pg_advisory_unlock_all(), pg_catalog.setseed({seed:.15f})"


def _shorter(milliseconds: int, given: str | None) -> int:
    return min(milliseconds, int(given)) if given and int(given) else milliseconds
