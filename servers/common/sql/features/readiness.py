"""Readiness and health of a server, and its errors as clients see them."""

from shared import Run, ToolError

from ..errors import SqlError
from .context import SqlServerState


async def find_problem(running: Run[SqlServerState]) -> str | None:
    """Return the reason that the server is not ready, or None if it is."""
    for database in running.state.databases:
        try:
            await database.check()
        except SqlError as error:
            # A database locked by another process is fine, and will respond later.
            if error.code != "busy":
                return f"the database {database.name!r} does not answer: {error.code}"
    return None


def describe_health(running: Run[SqlServerState]) -> dict[str, object]:
    """Return the number of watched databases, and how they are watched."""
    return {"watching": running.state.watch.health}


def explain(error: SqlError) -> ToolError:
    """Return the error in the form for clients."""
    return ToolError(f"{error.code}: {error}")
