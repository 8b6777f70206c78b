"""Loads app pages. They are assembled only when a client first reads them, so that startup takes less time."""

from collections.abc import Callable
from pathlib import Path


def page_loader(path: Path) -> Callable[[], str]:
    """Return a function that assembles the page whose HTML file is at `path`. The function raises PageError."""

    def read() -> str:
        from .pages import assemble

        return assemble(path).html

    return read
