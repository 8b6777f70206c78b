"""Reports of code that blocks the event loop."""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from threading import Event, get_ident

import anyio
import pytest

from servers.bundle import program
from servers.bundle.loop_watch import _report, is_authors, watch_loop
from shared import text


class Heard(logging.Handler):
    """A log handler that records the texts, and sets `first` at the first of them."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.first = Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())
        self.first.set()


@pytest.fixture
def heard() -> Iterator[Heard]:
    heard = Heard()
    logging.getLogger("servers.dev").addHandler(heard)
    yield heard
    logging.getLogger("servers.dev").removeHandler(heard)


def test_blocking_code_of_the_folder_is_logged_with_its_stack(heard: Heard) -> None:
    async def block() -> bool:
        watch_loop(Path(__file__).parent)
        return heard.first.wait(60)

    assert asyncio.run(block())
    assert "the event loop has been blocked for over 100 ms" in heard.texts[0]
    assert "in block\n" in heard.texts[0]


def test_blocking_code_of_other_folders_is_not_logged(heard: Heard, tmp_path: Path) -> None:
    _report(get_ident(), tmp_path)
    assert heard.texts == []
    _report(get_ident(), Path(__file__).parent)
    assert len(heard.texts) == 1


@pytest.mark.parametrize(
    ("file", "is_theirs"),
    [
        (__file__, True),
        (anyio.__file__, False),
        (asyncio.__file__, False),
        (program.__file__, False),
        (text.__file__, False),
    ],
)
def test_libraries_below_the_folder_are_not_code_of_the_author(file: str, is_theirs: bool) -> None:
    assert is_authors(Path(file), Path(file).parents[-1]) == is_theirs
