"""Pins at work: `serve` withholds what changed, and `pin` has it shown again."""

import json
import sys
from pathlib import Path

import pytest
from anyio import to_thread

from servers.bundle.program import main
from tests.servers.bundle.test_serve_foreign import at_work, configured, listed, text

SERVER = Path(__file__).with_name("changeable.py")


def offer(path: Path, **descriptions: str) -> None:
    tools = [
        {"name": name, "description": said, "inputSchema": {"type": "object"}} for name, said in descriptions.items()
    ]
    # The server may be reading it.
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(tools))
    fresh.replace(path)


@pytest.mark.slow
async def test_a_tool_that_changed_is_withheld_until_it_is_accepted(tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    offer(tools, a="Is a.", b="Is b.")
    command = [sys.executable, "-I", "-S", str(SERVER), str(tools)]
    config = configured(tmp_path, others={"other": {"command": command, "pin": True}})
    pin = ["pin", "other", "--config", str(config)]
    async with at_work(tmp_path, config) as (process, http):
        assert await listed(http, "other") == ["a", "b"]
        offer(tools, a="Is another.", b="Is b.")
        assert await listed(http, "other") == ["b"]
        assert "the definition of a changed since it was pinned" in await text(http, "other", "a")
        assert await to_thread.run_sync(main, pin) == 1
        assert await to_thread.run_sync(main, [*pin, "--accept", "a"]) == 0
        assert await listed(http, "other") == ["a", "b"]
        assert await text(http, "other", "a") == ""
        process.process.terminate()
        assert process.wait() == 0
        log = process.stderr()
    said = "other: withheld, because their definitions are not the pinned ones: a; accept with: mcp-server-bundle pin"
    assert log.count(said) == 1
