"""Pages of apps, which are assembled when a client first reads them: a server that starts needs none."""

from collections.abc import Callable
from pathlib import Path


def read_later(path: Path) -> Callable[[], str]:
    """Return a function that returns the whole page whose HTML file is at `path`. It raises PageError."""

    def read() -> str:
        from .pages import assemble

        return assemble(path).html

    return read
