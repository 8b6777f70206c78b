"""Directories that end with the server."""

from contextlib import AbstractContextManager

__all__ = ["temporary_directory"]


def temporary_directory(what: str) -> AbstractContextManager[str]:
    """A new directory for `what`, whose path it gives; all that is in it goes at the end of the block."""
    # It loads three kinds of compression, and most servers never need it.
    import tempfile  # noqa: PLC0415

    return tempfile.TemporaryDirectory(prefix=f"sqlite-{what}-", ignore_cleanup_errors=True)
