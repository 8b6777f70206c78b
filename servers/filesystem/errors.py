"""What can go wrong with a file, as one exception with a stable code: that of all files, with codes of our own.

What `servers.common.files` refuses says what is wrong; `features/advice.py` adds what a client of this server can do
about it.
"""

from shared.coded_errors import PathError as FilesError

__all__ = ["FilesError", "changed", "explained"]


def explained(error: FilesError) -> str:
    """The code, what is wrong with which path, and what can be done about it."""
    return f"{error.code}: {error}"


def changed(written: str) -> FilesError:
    """The error for a file that is not the one a cursor was given for."""
    return FilesError("changed", written, "has changed since", "Read it from the start again.")
