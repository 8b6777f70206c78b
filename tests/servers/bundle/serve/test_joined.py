"""Several servers at one URL: `python -m servers serve` with `join`."""

import json
import sys
from pathlib import Path

import anyio
import pytest

from tests.servers.bundle.commands.test_serve import metrics
from tests.servers.bundle.serve.test_foreign_server import at_work, call, configured, listed, started, text


@pytest.mark.slow
async def test_all_are_one_at_mcp_and_each_is_at_its_name(tmp_path: Path) -> None:
    others = {"filesystem": {"roots": ["."]}, "other": started()}
    (tmp_path / "a.txt").write_text("hello")
    async with at_work(tmp_path, configured(tmp_path, others=others, join=["filesystem", "other"])) as (
        process,
        http,
    ):
        assert {"read_text_file", "pid"} <= {*await listed(http, "")}
        assert "search_prompts" not in await listed(http, "")
        assert "search_prompts" in await listed(http, "prompts")
        assert await text(http, "", "pid") == await text(http, "other", "pid")
        file = {"path": str(tmp_path / "a.txt")}
        assert await text(http, "", "read_text_file", **file) == await text(
            http, "filesystem", "read_text_file", **file
        )
        told, found = (await http.get("/metrics")).text, await metrics(http)
        process.process.terminate()
        assert process.wait() == 0
        assert [line.partition(" [")[2] for line in process.stderr().splitlines()] == [
            f"other]: {Path(sys.executable).name}: other: a word on stderr"
        ]
    assert 'mcp_server_info{path="/mcp",server="joined"' in told
    assert found["mcp_requests_total"]["joined", "tools/call", "pid"] == 1
    assert found["mcp_server_up"]["joined",] == 1


@pytest.mark.slow
async def test_one_that_ends_and_returns_is_missing_meanwhile_and_nothing_else(tmp_path: Path) -> None:
    others = {"other": started()}
    async with at_work(tmp_path, configured(tmp_path, others=others, join=True, prefix="always")) as (process, http):
        first = await text(http, "", "other__pid")
        said = (await call(http, "", "other__leave")).json()
        assert "other" in json.dumps(said)
        assert "result" in (await call(http, "", "prompts__search_prompts", query="x")).json()
        answer = said
        while "error" in answer or answer["result"].get("isError"):
            await anyio.lowlevel.checkpoint()
            answer = (await call(http, "", "other__pid")).json()
        assert answer["result"]["content"][0]["text"] != first
        assert "other__pid" in await listed(http, "")
        process.process.terminate()
        assert process.wait() == 0
