"""App pages, which are assembled when a client first reads them, since they are not needed at startup."""

from collections.abc import Callable
from pathlib import Path


def read_later(path: Path) -> Callable[[], str]:
    """Return a function that returns the assembled page whose HTML file is at `path`. The function raises
    PageError."""

    def read() -> str:
        from .pages import assemble

        return assemble(path).html

    return read
