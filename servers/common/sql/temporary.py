"""Creates temporary directories for SQL servers."""

from contextlib import AbstractContextManager


def temporary_directory(purpose: str) -> AbstractContextManager[str]:
    """Create a directory with `purpose` in its name and yield its path. It is removed with its contents."""
    # `tempfile` imports three compression modules, and most servers never need it, so import it late.
    import tempfile

    return tempfile.TemporaryDirectory(prefix=f"sql-{purpose}-", ignore_cleanup_errors=True)
