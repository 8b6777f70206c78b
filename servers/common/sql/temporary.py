"""Directories that end with who needs them."""

from contextlib import AbstractContextManager


def temporary_directory(what: str) -> AbstractContextManager[str]:
    """A new directory for `what`, whose path it gives; all that is in it goes at the end of the block."""
    # It loads three kinds of compression, and most servers never need it.
    import tempfile

    return tempfile.TemporaryDirectory(prefix=f"sql-{what}-", ignore_cleanup_errors=True)
