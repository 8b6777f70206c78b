"""How a server and one database are doing, as lines for a person or a model."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial

from servers.common.sql.errors import SqlError
from servers.common.sql.texts import fence
from servers.postgres.engine.link import Ask
from servers.postgres.health.checks import CHECKS, Check
from servers.postgres.health.questions import SEES_ALL
from servers.postgres.health.slow_statements import list_slow_statements

_SAVEPOINT = "mcp_bundle_check"
_SECONDS = 5
"""That one thing may take to be looked at."""
_LOCK_MILLISECONDS = 200
"""The size of a table that is locked is not known, and nothing waits for that."""
_LIMIT = """
    SELECT pg_catalog.set_config('statement_timeout', $1, true), pg_catalog.set_config('lock_timeout', $2, true)"""
_WARNING = "WARNING"
_HIDDEN = "not allowed for this role: sessions of others (the operator can GRANT pg_read_all_stats)"


async def check_health(ask: Ask) -> list[str]:
    """A line for each thing that was found, in sections with their titles; in a transaction. What can't be looked at
    says why. Raises SqlError only where the connection breaks."""
    lines: list[str] = []
    ((sees_all,),) = await ask(SEES_ALL)
    await ask(_LIMIT, f"{_SECONDS}s", f"{_LOCK_MILLISECONDS}ms")
    for check in CHECKS:
        found = await _try(ask, partial(_look, check))
        hidden = [_HIDDEN] if check.is_of_sessions and not sees_all else []
        lines += _format_section(check.title, found + hidden)
    lines += _format_section("slow statements", await _try(ask, list_slow_statements))
    return lines


def format_health(database: str, lines: Sequence[str]) -> str:
    """What was found, between marks."""
    warnings = sum(line.lstrip().startswith(_WARNING) for line in lines)
    head = f"database {database}; {warnings or 'no'} warning{'' if warnings == 1 else 's'}"
    return "\n".join((head, fence(lines)))


async def _look(check: Check, ask: Ask) -> list[str]:
    return list(check.tell(await ask(check.question)))


async def _try(ask: Ask, look: Callable[[Ask], Awaitable[list[str]]]) -> list[str]:
    # What fails must not end the transaction, in which others are looked at.
    await ask(f"SAVEPOINT {_SAVEPOINT}")
    try:
        found = await look(ask)
    except SqlError as error:
        if error.code == "unavailable":
            raise
        await ask(f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}")
        return ["not allowed for this role" if error.code == "denied" else f"not known: {error.line}"]
    await ask(f"RELEASE SAVEPOINT {_SAVEPOINT}")
    return found


def _format_section(title: str, found: Sequence[str]) -> Iterator[str]:
    yield f"{title}:" + ("" if found else " nothing to tell")
    yield from (f"  {line}" for line in found)
