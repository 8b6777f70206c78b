"""The documents for people: the README and the pages of the site."""

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def _pages() -> Iterator[Path]:
    yield ROOT / "README.md"
    for pattern in ("docs/*.md", "docs/clients/*.md", "servers/*/README.md"):
        yield from sorted(ROOT.glob(pattern))
    yield ROOT / "docker/README.md"
    yield ROOT / "CONTRIBUTING.md"


PAGES = tuple(page.relative_to(ROOT).as_posix() for page in _pages())
"""Paths from the root of the checkout. Each page shows commands that work after those of the README."""
