"""FastMCP's client with its extension for tasks, at the everything server."""

import json
from pathlib import Path

import pytest

from tests import pypi
from tests.checks.interop.others.environments import FOLDER
from tests.checks.interop.others.test_others import drive, reach
from tests.checks.interop.peers import HttpServers

pytestmark = pytest.mark.timeout(900)  # the first one may have to build an environment

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


@pytest.mark.parametrize("over", ["stdio", "http"])
def test_the_client_follows_tasks(over: str, folder: Path, http_servers: HttpServers) -> None:
    python = pypi.require("fastmcp-tasks", FOLDER / "requirements-fastmcp-tasks.txt")
    where = reach("everything", "stdio" if over == "stdio" else "http+token", folder, http_servers)
    found = drive([str(python), str(FOLDER / "drive_fastmcp_tasks.py"), json.dumps(where)])
    assert found == dict.fromkeys(ROWS, "ok")
