"""The messages that begin and end transactions. All settings that statements need are limited to the transaction.

A pooler may give a PostgreSQL session to another client as soon as a transaction has ended. So nothing is set for the
session, and the message that ends a transaction also undoes effects that outlive a rollback.
"""

import os
from collections.abc import Mapping

from ..sql import quote
from .deadline import Limits

_BACKSTOP_SECONDS = 5.0
"""PostgreSQL itself ends a statement this many seconds after the timeout, in case this program has ended."""
_IDLE_SECONDS = 120.0
"""Seconds after which PostgreSQL ends an idle transaction."""
_FIXED_SETTINGS = {
    # So strings are parsed and values are written in the same way with all settings of the role or database.
    "standard_conforming_strings": "on",
    "DateStyle": "ISO",
    "IntervalStyle": "iso_8601",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "xmlbinary": "base64",
    "jit": "off",
    # Otherwise PostgreSQL plans a query with a cursor for its first rows, even if all of them are fetched. That may
    # take much longer than the plan that EXPLAIN shows.
    "cursor_tuple_fraction": "1",
    "idle_in_transaction_session_timeout": str(round(_IDLE_SECONDS * 1_000)),
}
_CHECK_CLIENT = {"client_connection_check_interval": "2000"}
"""Makes PostgreSQL check every two seconds that this program is still connected, so that it ends the statements of a
program that was killed."""
SERVER_PROCESS = """SELECT pg_catalog.pg_backend_pid(),
    pg_catalog.current_setting('server_version_num')::pg_catalog.int4 >= 140000
    AND pg_catalog.version() ~ 'linux|darwin|bsd'"""
"""Selects the id of the process that serves a connection, and true if it can detect a lost client (since version 14,
on systems that support this)."""

DISCARD_SESSION = "UNLISTEN *; DISCARD TEMP; DISCARD SEQUENCES"
"""Removes what functions in the statements may have left in the session."""


class TransactionStart:
    """The statements that begin a transaction on one connection."""

    def __init__(self, limits: Limits, operator_settings: Mapping[str, str], *, checks_client: bool) -> None:
        """Prepare the settings. Timeouts in the `operator_settings`, which come from the URL, apply only if they are
        shorter than those in `limits`."""
        settings = _FIXED_SETTINGS | (_CHECK_CLIENT if checks_client else {})
        # At least 1, since 0 would mean no timeout.
        self._lock_timeout = _limit(max(round(limits.busy_timeout * 1_000), 1), operator_settings.get("lock_timeout"))
        self._statement_timeout = operator_settings.get("statement_timeout")
        settings["lock_timeout"] = str(self._lock_timeout)
        lines = [f"SET LOCAL {name} = '{value}'" for name, value in settings.items()]
        if "search_path" in operator_settings:
            lines.append(
                f"SET LOCAL search_path = {', '.join(map(quote, operator_settings['search_path'].split(',')))}"
            )
        self._settings = "; ".join(lines)

    def format(self, mode: str, timeout: float) -> str:
        """Return one message that begins a transaction in that `mode`. Each of its statements may take `timeout`
        seconds."""
        timeout_ms = _limit(round((timeout + _BACKSTOP_SECONDS) * 1_000), self._statement_timeout)
        return f"BEGIN {mode}; SET LOCAL statement_timeout = {timeout_ms}; {self._settings}"


def format_end(*, writes: bool) -> str:
    """Return one message that rolls back a transaction and undoes the effects that outlive a rollback: session locks
    (manual, Advisory Locks), the state of random(), and if the transaction `writes`, the cached values of sequences.
    """
    discard = "DISCARD SEQUENCES; " if writes else ""
    return f"ROLLBACK; {discard}{format_release()}"


def format_release() -> str:
    """Return a statement that releases session locks, and makes random() unpredictable again."""
    seed = int.from_bytes(os.urandom(6), "big") / 2**48
    return f"SELECT pg_catalog.pg_advisory_unlock_all(), pg_catalog.setseed({seed:.15f})"


def _limit(milliseconds: int, setting: str | None) -> int:
    return min(milliseconds, int(setting)) if setting and int(setting) else milliseconds
