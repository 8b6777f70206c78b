"""At the end of the run the images are listed, with what each adds to its base and how soon it answers."""

from typing import Any

import pytest

from tests.docker.debian import find_program

ROWS: dict[str, str] = {}


@pytest.fixture
def rows() -> dict[str, str]:
    """What is to be said of each image."""
    return ROWS


@pytest.fixture(scope="session")
def nginx(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The web server."""
    return find_program("nginx", "nginx", tmp_path_factory.mktemp("nginx"))


@pytest.fixture(scope="session")
def promtool(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What checks the rules of Prometheus."""
    return find_program("promtool", "prometheus", tmp_path_factory.mktemp("prometheus"))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints the list."""
    if ROWS:
        terminalreporter.section("images")
    for name, row in ROWS.items():
        terminalreporter.write_line(f"{name:10}  {row}")
