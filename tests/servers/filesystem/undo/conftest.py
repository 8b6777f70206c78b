"""A separate journal for each test, and the writing functions that use it."""

from pathlib import Path

import pytest

from servers.filesystem.history.recording import History, HistoryOptions, Recorder
from tests.servers.filesystem.conftest import files, outside, root

__all__ = ["files", "outside", "root"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state" / "undo"


@pytest.fixture
def history(folder: Path):
    opened = History(HistoryOptions(folder, 1024 * 1024, 7))
    yield opened
    opened.close()


@pytest.fixture
def recorder(history: History):
    return Recorder(history)
