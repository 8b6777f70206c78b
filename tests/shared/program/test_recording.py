"""`--audit` of whole programs: one server on stdio and over HTTP, several of them, and a file that can't be had."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from shared.client.connect import connect, connect_stdio
from tests.checks.faults.raw import ROOT
from tests.wire import serving

EVERYTHING = [sys.executable, "-m", "servers.everything"]
BUNDLE = [sys.executable, "-m", "servers"]
PATIENCE = 60.0
TOKEN = "a-token-of-the-test"

pytestmark = pytest.mark.slow


def told(path: Path) -> list[tuple[Any, ...]]:
    """Of each line the server, the tool and what came of it."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [(one["server"], one.get("tool"), one["outcome"]) for one in lines if one.get("tool") or "status" in one]


async def test_a_server_on_stdio_writes_down_what_it_does(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    with anyio.fail_after(PATIENCE):
        async with connect_stdio([*EVERYTHING, "--audit", str(path)], cwd=ROOT) as client:
            await client.call_tool("echo", {"text": "hi"})
    assert told(path) == [("everything", "echo", "ok")]
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("command", "way", "listener"),
    [
        ([*EVERYTHING, "--transport", "http"], "/mcp", "everything"),
        ([*BUNDLE, "serve", "everything"], "/everything/mcp", "everything"),
        pytest.param([*BUNDLE, "serve", "everything", "--join"], "/mcp", "joined", marks=pytest.mark.slow),
    ],
    ids=["alone", "one of several", "joined"],
)
async def test_a_listener_writes_down_calls_and_refusals(
    command: list[str], way: str, listener: str, tmp_path: Path
) -> None:
    path = tmp_path / "audit"
    options = ["--port", "0", "--audit", str(path)]
    with anyio.fail_after(PATIENCE):
        async with serving([*command, *options], env={**os.environ, "MCP_TOKEN": TOKEN}) as base:
            async with connect(f"{base}{way}", token=TOKEN) as client:
                await client.call_tool("echo", {"text": "hi"})
            async with httpx.AsyncClient(trust_env=False) as stranger:
                assert (await stranger.post(f"{base}{way}")).status_code == 401
    assert told(path) == [("everything", "echo", "ok"), (listener, None, "refused")]
    assert TOKEN not in path.read_text()


@pytest.mark.parametrize(
    ("place", "why"),
    [("missing/audit", "No such file or directory"), (".", "Is a directory"), ("pipe", "is not a regular file")],
)
def test_a_file_that_can_not_be_had_is_told_at_the_start(place: str, why: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    command = [*EVERYTHING, "--audit", str(tmp_path / place)]
    ended = subprocess.run(command, capture_output=True, text=True, input="", timeout=PATIENCE, cwd=ROOT)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "--audit: " in ended.stderr
    assert why in ended.stderr
    assert ended.stderr.count("\n") == 1
