"""At the end of the run the images are listed, with what each adds to its base and how soon it answers."""

from typing import Any

import pytest

ROWS: dict[str, str] = {}


@pytest.fixture
def rows() -> dict[str, str]:
    """What is to be said of each image."""
    return ROWS


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints the list."""
    if ROWS:
        terminalreporter.section("images")
    for name, row in ROWS.items():
        terminalreporter.write_line(f"{name:10}  {row}")
