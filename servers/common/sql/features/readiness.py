"""Whether a server is ready and well, and what clients are told of errors."""

from shared import Run, ToolError

from ..errors import SqlError
from .context import Opened


async def find_problem(running: Run[Opened]) -> str | None:
    """Why the server is not ready, or None where it is."""
    for database in running.state.databases:
        try:
            await database.check()
        except SqlError as error:
            # One that somebody else holds locked is all right, and will answer.
            if error.code != "busy":
                return f"the database {database.name!r} does not answer: {error.code}"
    return None


def describe_health(running: Run[Opened]) -> dict[str, object]:
    """How much is watched, and by what."""
    return {"watching": running.state.watch.health}


def explain(error: SqlError) -> ToolError:
    """The error as a client gets it."""
    return ToolError(f"{error.code}: {error}")
