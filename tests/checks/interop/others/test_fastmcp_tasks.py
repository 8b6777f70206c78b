"""FastMCP's client with its extension for tasks, at the everything server."""

import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests import pypi
from tests.checks.interop.others.environments import FOLDER
from tests.checks.interop.others.test_others import drive
from tests.checks.interop.peers import ROOT, TOKEN, HttpServers, command
from tests.npm import Unavailable

pytestmark = [
    pytest.mark.timeout(900),  # the first one may have to build an environment
]

ROWS = (
    "answers_at_once",
    "follows_a_task",
    "tells_of_a_failure",
    "tells_of_an_error",
    "answers_a_question",
    "answers_two_questions",
    "answers_before_the_task",
    "looks_by_hand",
    "cancels_twice",
)

Driven = Callable[[str], dict[str, str]]


@pytest.fixture(scope="session")
def driven_tasks(folder: Path, http_servers: HttpServers) -> Driven:
    """What the driver says of each row, over stdio or HTTP; each is run once."""

    @cache
    def run(over: str) -> dict[str, str]:
        try:
            python = pypi.require("fastmcp-tasks", FOLDER / "requirements-fastmcp-tasks.txt")
        except Unavailable as error:
            if os.environ.get("CI") == "true":
                pytest.fail(str(error))
            pytest.skip(str(error))
        where: dict[str, Any] = {"command": command("everything", folder), "cwd": str(ROOT)}
        if over == "http":
            where = {"url": http_servers.url("everything", TOKEN), "token": TOKEN}
        return drive([str(python), str(FOLDER / "drive_fastmcp_tasks.py"), json.dumps(where)])

    return run


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("over", ["stdio", "http"])
def test_row(driven_tasks: Driven, over: str, row: str) -> None:
    found = driven_tasks(over)
    outcome = found.get(row) or f"the driver did not come to this row: {found.get('driver', 'it ended before')}"
    assert outcome == "ok", outcome
