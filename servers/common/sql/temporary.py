"""Temporary directories for SQL servers."""

from contextlib import AbstractContextManager


def temporary_directory(purpose: str) -> AbstractContextManager[str]:
    """Create a directory with `purpose` in its name and yield its path. It is removed with its contents."""
    # Imported here because it imports three compression modules, and most servers never need it.
    import tempfile

    return tempfile.TemporaryDirectory(prefix=f"sql-{purpose}-", ignore_cleanup_errors=True)
