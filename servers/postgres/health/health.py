"""The health of a server and one database, as lines for a person or a model."""

from collections.abc import Awaitable, Callable, Iterator, Sequence

from servers.common.sql.errors import SqlError
from servers.common.sql.texts import fence
from servers.postgres.engine.link import Ask
from servers.postgres.health.checks import CHECKS
from servers.postgres.health.queries import SEES_ALL
from servers.postgres.health.slow_statements import list_slow_statements

_SAVEPOINT = "mcp_bundle_check"
_SECONDS = 5
"""Time limit of one check, in seconds."""
_LOCK_MILLISECONDS = 200
"""Milliseconds to wait for a lock. The size of a locked table stays unknown."""
_LIMIT = """
    SELECT pg_catalog.set_config('statement_timeout', $1, true), pg_catalog.set_config('lock_timeout', $2, true)"""
_WARNING = "WARNING"
_HIDDEN = "not allowed for this role: sessions of others (the operator can GRANT pg_read_all_stats)"


async def check_health(ask: Ask) -> list[str]:
    """In a transaction, return the findings by section title, one line each.

    A failed check gives the reason. Raises SqlError only if the connection breaks.
    """
    lines: list[str] = []
    ((sees_all,),) = await ask(SEES_ALL)
    await ask(_LIMIT, f"{_SECONDS}s", f"{_LOCK_MILLISECONDS}ms")
    for check in CHECKS:
        findings = await _try(ask, check.run)
        hidden = [_HIDDEN] if check.is_of_sessions and not sees_all else []
        lines += _format_section(check.title, findings + hidden)
    lines += _format_section("slow statements", await _try(ask, list_slow_statements))
    return lines


def format_health(database: str, lines: Sequence[str]) -> str:
    """Format the findings between data marks."""
    warnings = sum(line.lstrip().startswith(_WARNING) for line in lines)
    head = f"database {database}; {warnings or 'no'} warning{'' if warnings == 1 else 's'}"
    return "\n".join((head, fence(lines)))


async def _try(ask: Ask, check: Callable[[Ask], Awaitable[list[str]]]) -> list[str]:
    # A failure must not end the transaction in which the other checks run.
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
