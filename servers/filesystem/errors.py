"""What can go wrong with a file, as one exception with a stable code: that of all files, with codes of our own.

What `servers.common.files` refuses says what is wrong; what a client of this server can do about it stands here.
"""

from shared.coded_errors import PathError as FilesError

__all__ = ["FilesError", "changed", "explained"]

_ADVICE = {
    ("not_a_file", "is a directory"): "Use list_directory.",
    ("not_found", "the directory it would be in does not exist"): "Make it with create_directory first.",
    ("read_only", "is in a directory that may only be read"): (
        "The operator can allow it with --allow-write, or --root DIR:rw."
    ),
}


def explained(error: FilesError) -> str:
    """The code, what is wrong with which path, and what can be done about it."""
    advice = error.suggestion or _ADVICE.get((error.code, error.reason), "")
    return f"{error.code}: {FilesError(error.code, error.path, error.reason, advice)}"


def changed(written: str) -> FilesError:
    """The error for a file that is not the one a cursor was given for."""
    return FilesError("changed", written, "has changed since", "Read it from the start again.")
