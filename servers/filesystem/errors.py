"""File errors as one exception with a stable code: the codes of `servers.common.files`, and additional ones.

Errors of `servers.common.files` give the reason; `features/advice.py` adds advice for clients of this server.
"""

from shared.coded_errors import PathError as FilesError

__all__ = ["FilesError", "changed_error", "format_error"]


def format_error(error: FilesError) -> str:
    """Return the code, the problem and its path, and a remedy."""
    return f"{error.code}: {error}"


def changed_error(path: str) -> FilesError:
    """Return the error for a file that has changed since the cursor was made."""
    return FilesError("changed", path, "has changed since", "Read it from the start again.")
