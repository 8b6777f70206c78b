"""`FilesError`: every error about a file, with a stable code. It is another name of the `PathError` that
`servers.common.files` raises, to whose codes this server adds its own.

An error gives the reason; `features/advice.py` adds advice for clients of this server.
"""

from shared.coded_errors import PathError as FilesError

__all__ = ["FilesError", "changed_error", "format_error"]


def format_error(error: FilesError) -> str:
    """Return the code, the path, the problem, and the suggested remedy, if any."""
    return f"{error.code}: {error}"


def changed_error(path: str) -> FilesError:
    """Return the error for a file that has changed since the cursor was made."""
    return FilesError("changed", path, "has changed since", "Read it from the start again.")
