"""Authorization rules of a settings file, enforced by a process."""

import sys
from pathlib import Path

import httpx
import pytest

from tests.raw import NO_TLS, headers_of, request, stateless
from tests.wire import Wire, serving

TOKEN = "hunter2"
RULES = """
transport = "http"
port = 0
token = "hunter2"
roots = ["."]

[scopes]
read_media_file = "filesystem:media"
raed_text_file = "filesystem:read"

[principal."*"]
scopes = "filesystem:read"
roots = ["mine"]
"""
INFO = {"name": "test", "version": "1"}


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    for name in ("mine", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file.txt").write_text(f"it is {name}")
    path = tmp_path / "settings.toml"
    path.write_text(RULES)
    path.chmod(0o600)
    return path


def command(settings: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "servers.filesystem", "--settings", str(settings), *options]


async def test_principals_over_http_have_the_rights_of_the_settings_file(settings: Path) -> None:
    async with serving(command(settings)) as url, httpx.AsyncClient(trust_env=False, verify=NO_TLS) as client:

        async def ask(method: str, **params: object) -> httpx.Response:
            message = stateless(request(1, method, params))
            headers = {**headers_of(message), "authorization": f"Bearer {TOKEN}"}
            return await client.post(f"{url}/mcp", json=message, headers=headers)

        async def call(name: str, path: Path) -> str:
            return (await ask("tools/call", name=name, arguments={"path": str(path)})).text

        tools = {tool["name"] for tool in (await ask("tools/list")).json()["result"]["tools"]}
        assert "read_text_file" in tools
        assert "read_media_file" not in tools
        assert "it is mine" in await call("read_text_file", settings.parent / "mine/file.txt")
        assert "outside" in await call("read_text_file", settings.parent / "other/file.txt")
        assert "unknown tool" in await call("read_media_file", settings.parent / "mine/file.txt")


@pytest.mark.slow
async def test_an_unknown_tool_in_the_rules_is_reported_at_startup(settings: Path) -> None:
    async with Wire(command(settings, "--transport", "stdio")) as wire:
        await wire.initialize()
    assert "there is no tool 'raed_text_file' in filesystem; did you mean 'read_text_file'?" in wire.stderr
