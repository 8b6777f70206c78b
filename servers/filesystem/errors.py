"""The errors of files as one exception with a stable code: those of all files, and codes of our own.

Errors of `servers.common.files` give the reason; `features/advice.py` adds what a client of this server can do about
it.
"""

from shared.coded_errors import PathError as FilesError

__all__ = ["FilesError", "changed", "explained"]


def explained(error: FilesError) -> str:
    """Return the code, what is wrong with which path, and what can be done about it."""
    return f"{error.code}: {error}"


def changed(written: str) -> FilesError:
    """Return the error for a file that differs from the one of the cursor."""
    return FilesError("changed", written, "has changed since", "Read it from the start again.")
