"""Reports the health of a PostgreSQL server and one database, as lines for a person or a model."""

from collections.abc import Awaitable, Callable, Iterator, Sequence

from servers.common.sql.errors import SqlError
from servers.common.sql.texts import fence

from ..engine.link import Ask
from .checks import CHECKS
from .queries import SEES_ALL
from .slow_statements import list_slow_statements

_SAVEPOINT = "mcp_bundle_check"
_CHECK_TIMEOUT = 5
"""Maximum number of seconds of one check."""
_LOCK_MILLISECONDS = 200
"""Maximum number of milliseconds to wait for a lock. After that, the size of a locked table is not reported."""
_SET_TIMEOUTS = """
    SELECT pg_catalog.set_config('statement_timeout', $1, true), pg_catalog.set_config('lock_timeout', $2, true)"""
_WARNING = "WARNING"
_HIDDEN_SESSIONS = "not allowed for this role: sessions of others (the operator can GRANT pg_read_all_stats)"


async def check_health(ask: Ask) -> list[str]:
    """Return the lines of the report: the title of each check, then its findings. `ask` must be in a transaction.

    If a check fails, the report contains the reason. Raises SqlError only if the connection breaks.
    """
    lines: list[str] = []
    ((sees_all,),) = await ask(SEES_ALL)
    await ask(_SET_TIMEOUTS, f"{_CHECK_TIMEOUT}s", f"{_LOCK_MILLISECONDS}ms")
    for check in CHECKS:
        findings = await _run_check(ask, check.run)
        hidden = [_HIDDEN_SESSIONS] if check.concerns_sessions and not sees_all else []
        lines += _format_section(check.title, findings + hidden)
    lines += _format_section("slow statements", await _run_check(ask, list_slow_statements))
    return lines


def format_health(database: str, lines: Sequence[str]) -> str:
    """Return the lines of the report, between marks that say that they are data, below a heading."""
    warnings = sum(line.lstrip().startswith(_WARNING) for line in lines)
    heading = f"database {database}; {warnings or 'no'} warning{'' if warnings == 1 else 's'}"
    return "\n".join((heading, fence(lines)))


async def _run_check(ask: Ask, check: Callable[[Ask], Awaitable[list[str]]]) -> list[str]:
    # With the savepoint, a failure does not end the transaction in which the other checks run.
    await ask(f"SAVEPOINT {_SAVEPOINT}")
    try:
        findings = await check(ask)
    except SqlError as error:
        if error.code == "unavailable":
            raise
        await ask(f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}")
        return ["not allowed for this role" if error.code == "denied" else f"not known: {error.line}"]
    await ask(f"RELEASE SAVEPOINT {_SAVEPOINT}")
    return findings


def _format_section(title: str, findings: Sequence[str]) -> Iterator[str]:
    yield f"{title}:" + ("" if findings else " nothing to report")
    yield from (f"  {line}" for line in findings)
