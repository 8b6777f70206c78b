"""A server on stdio loads nothing that only another transport or a test needs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.wire import Wire

ROOT = Path(__file__).resolve().parents[1]
HEAVY = {"starlette", "uvicorn", "httpx", "jsonschema", "yaml", "watchfiles", "mcp"}


def _heavy(modules: list[str]) -> list[str]:
    return sorted(name for name in modules if name.partition(".")[0] in HEAVY)


def test_importing_a_server_is_light() -> None:
    script = "import json, sys, servers.filesystem.server; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    modules = json.loads(done.stdout)
    assert "servers.filesystem.server" in modules
    assert not _heavy(modules)


@pytest.mark.slow
async def test_serving_on_stdio_is_light(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPROFILEIMPORTTIME": "1", "PYTHONPATH": str(ROOT)}
    async with Wire([sys.executable, "-m", "servers.filesystem", str(tmp_path)], env=env) as wire:
        assert (await wire.initialize())["serverInfo"]["name"]
        await wire.close_stdin()
        assert await wire.wait() == 0
    modules = re.findall(r"^import time:.*\| *(\S+)$", wire.stderr, re.MULTILINE)
    assert "servers.filesystem.server" in modules, wire.stderr[:2000]
    assert not _heavy(modules)
